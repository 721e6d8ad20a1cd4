"""``-a``: the ways to start tasks that lava has built in (mpi, training frameworks), and the software that a job sees.

A site's own esubs have been run by the command already. Rule: pure; the environments themselves are the agent's, and what is on
which host only the job finds out, when it starts there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit.readers import reads, texts_of
from lavad.core.lang.asks import OptionValue, Refused
from proto.options import MPI_LIBRARIES

WORDS: dict[str, tuple[str, ...]] = {
    "pytorch": ("gpu",),
    "lightning": ("gpu",),
    "deepspeed": ("gpu",),
    "tensorflow": ("chief",),
    "horovod": ("gpu",),
    "jax": (),
    "torchrun": ("static",),
}
"""Each framework, and the words that it accepts in parentheses."""
NUMBERS: dict[str, tuple[str, ...]] = {"torchrun": ("nproc", "restarts", "requeues")}
"""Words with a number: the processes of each host, how often torchrun starts them again, how often the job is requeued by -Q."""
MAX_NUMBER = 100_000

_CALL = re.compile(r"([^\s,()]+)(\([^()]*\))?")
LAUNCHERS = ("mpirun", "mpiexec", "srun", "prun", "orterun")
_FRAMEWORK_LAUNCHERS = (*LAUNCHERS, "horovodrun", "deepspeed", "accelerate")
SOFTWARE = ("modules", "conda", "venv", "container")
RUNNERS = ("apptainer", "singularity", "podman", "unshare")
PULLS = ("missing", "always", "never")
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@~=-]*")
_ORDER = {"modules": 0, "container": 1, "conda": 2, "venv": 3}

Step = tuple[str, ...]
"""(name, arguments …); ``container``: image, runner ("": any that is installed), pull."""


@reads("a")
def read_esubs(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``name[(words)] ...``."""
    texts = texts_of(option, value)
    steps: list[Step] = []
    launches: dict[str, str] = {}
    for name, inside in [found for text in texts for found in names(text)]:
        if name in WORDS:
            launches[name] = launch_of(name, inside, draft.text.command)
        elif name in SOFTWARE:
            steps.append(step_of(name, inside))
        elif name in MPI_LIBRARIES:
            launches[name] = name
        elif name == "mpi":
            if inside.strip():
                raise Refused(f"mpi({inside[:64]}): -a mpi takes no words in parentheses")
            _check_no_launcher(draft.text.command)
            launches[name] = name
        else:
            raise Refused(f"{name}: no such esub, and lava has no application of this name")
    if len(launches) > 1:
        raise Refused(f"{' and '.join(launches)}: a job's tasks are started in one way; give one of them with -a")
    for launch in launches.values():
        draft.set_spec(launch=launch)
    draft.set_text(esub=" ".join(word for text in texts for word in text.split()), software=in_order(steps))


def _check_no_launcher(command: str) -> None:
    first = _program(command)
    if _is_one_of(LAUNCHERS, first):
        raise Refused(
            f"{first}: -a mpi starts every rank itself; give the program alone (bsub -a mpi -n N PROGRAM), "
            f"or leave -a mpi out (bsub -n N {first} …)"
        )


def _program(command: str) -> str:
    """The name of the program that a command begins with."""
    return command.split(None, 1)[0].rpartition("/")[2] if command.strip() else ""


def _is_one_of(launchers: tuple[str, ...], program: str) -> bool:
    """Whether it is one of these, perhaps of a certain library (``mpiexec.hydra``, ``mpirun_rsh``); not ``prune``."""
    return any(re.fullmatch(rf"{name}(_rsh|[-.0-9].*)?", program) for name in launchers)


def names(text: str) -> Iterator[tuple[str, str]]:
    """The names of one ``-a``, each with the text in parentheses after it; raises Refused for parentheses that are not paired."""
    if "(" in (left := _CALL.sub("", text)) or ")" in left:
        raise Refused(f"{text[:64]}: Bad -a specification: a parenthesis is missing")
    for match in _CALL.finditer(text):
        yield match[1], (match[2] or "").strip("()")


def launch_of(name: str, inside: str, command: str) -> str:
    """The job's launch, as the agents read it; raises Refused for words or programs that cannot be."""
    words = sorted({word for word in re.split(r"[\s,]+", inside) if word})
    for word in words:
        if word not in WORDS[name] and not _is_number(name, word):
            every = (*WORDS[name], *(f"{one}=N" for one in NUMBERS.get(name, ())))
            known = f"; it knows {', '.join(every)}" if every else ""
            raise Refused(f"{name}({word}): -a {name} does not know {word}{known}")
    first = _program(command)
    launchers = _FRAMEWORK_LAUNCHERS if name == "torchrun" else (*_FRAMEWORK_LAUNCHERS, "torchrun")
    if _is_one_of(launchers, first):
        hint = "; use -a torchrun" if first == "torchrun" else ""
        raise Refused(f"{first}: -a {name} starts every rank itself; give the program alone (bsub -a {name} -n N PROGRAM){hint}")
    return f"{name}({','.join(words)})" if words else name


def _is_number(name: str, word: str) -> bool:
    """Whether it is ``nproc=4``; raises Refused for a number that cannot be."""
    key, equals, value = word.partition("=")
    if not equals or key not in NUMBERS.get(name, ()):
        return False
    least = 1 if key == "nproc" else 0
    if not re.fullmatch(r"[0-9]{1,6}", value) or not least <= int(value) <= MAX_NUMBER:
        raise Refused(f"{name}({word}): -a {name} does not know {word}; {key}= is a number from {least} to {MAX_NUMBER}")
    return True


def step_of(name: str, inside: str) -> Step:
    """One of them as the agents read it; raises Refused."""
    words = [word for word in re.split(r"[\s,]+", inside) if word]
    if not words:
        raise Refused(f"{name}: -a {name} needs something in parentheses, as in {_EXAMPLE[name]}")
    if any(ord(char) < 32 for char in inside) or len(inside) > 4096:
        raise Refused(f"{name}({inside[:40]!r}): Bad name")
    if name == "modules":
        for word in words:
            if not _MODULE.fullmatch(word):
                raise Refused(f"modules({word}): Bad module name")
        return (name, *words)
    if name == "container":
        return _container(*words)
    value = inside.strip()
    if value.startswith("-") or value in (".", ".."):
        raise Refused(f"{name}({value}): Bad name")
    return (name, value)


_EXAMPLE = {
    "modules": '-a "modules(gcc/12 openmpi)"',
    "conda": '-a "conda(myenv)"',
    "venv": '-a "venv(/path/to/venv)"',
    "container": '-a "container(/path/image.sif)"',
}


def _container(image: str, *options: str) -> Step:
    given = {"runner": "", "pull": "missing"}
    for option in options:
        key, equal, value = option.partition("=")
        if key not in given or not equal:
            raise Refused(f"container({option}): only runner=… and pull=… may follow the image")
        given[key] = value
    if given["runner"] == "docker":
        raise Refused(
            "container(runner=docker): docker starts containers outside of the job, where lava can neither limit "
            "nor end them; use podman or apptainer"
        )
    if given["runner"] and given["runner"] not in RUNNERS:
        raise Refused(f"container(runner={given['runner']}): the runners are {', '.join(RUNNERS)}")
    if given["pull"] not in PULLS:
        raise Refused(f"container(pull={given['pull']}): pull is one of {', '.join(PULLS)}")
    if image.startswith("-"):
        raise Refused(f"container({image}): Bad image")
    return ("container", image, given["runner"], given["pull"])


def in_order(steps: list[Step]) -> tuple[Step, ...]:
    """Modules first (they may bring the runner), then the container, then what is inside it; each at most once."""
    names = [step[0] for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"{name}: -a {name} is given twice")
    if "conda" in names and "venv" in names:
        raise Refused("conda and venv: a job has one of them")
    return tuple(sorted(steps, key=lambda step: _ORDER[step[0]]))
