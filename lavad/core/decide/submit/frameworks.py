"""``-a`` with the name of a training framework: which there are, what each may be asked, and what cannot be their program.

Rule: pure; the environments themselves are the agent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lavad.core.lang.asks import Refused

WORDS: dict[str, tuple[str, ...]] = {
    "pytorch": ("gpu",),
    "lightning": ("gpu",),
    "deepspeed": ("gpu",),
    "tensorflow": ("chief",),
    "horovod": ("gpu",),
    "jax": (),
    "torchrun": ("static",),
}
"""Each framework, and the words that may stand behind it in parentheses."""

_NAME = re.compile(r"([^\s,()]+)(\([^()]*\))?")
_MPI = ("mpirun", "mpiexec", "srun", "prun", "orterun", "horovodrun", "deepspeed", "accelerate")


def names(text: str) -> Iterator[tuple[str, str]]:
    """The names of one ``-a``, each with what stands behind it in parentheses."""
    for match in _NAME.finditer(text):
        yield match[1], (match[2] or "").strip("()")


def launch_of(name: str, inside: str, command: str) -> str:
    """The job's launch, as the agents read it; raises Refused for words or programs that cannot be."""
    words = sorted({word for word in re.split(r"[\s,]+", inside) if word})
    for word in words:
        if word not in WORDS[name]:
            known = f"; it knows {', '.join(WORDS[name])}" if WORDS[name] else ""
            raise Refused(f"{name}({word}): -a {name} does not know {word}{known}")
    first = command.split(None, 1)[0].rpartition("/")[2] if command.strip() else ""
    launchers = _MPI if name == "torchrun" else (*_MPI, "torchrun")
    if first.startswith(launchers):
        hint = "; use -a torchrun" if first == "torchrun" else ""
        raise Refused(f"{first}: -a {name} starts every rank itself; give the program alone (bsub -a {name} -n N PROGRAM){hint}")
    return f"{name}({','.join(words)})" if words else name
