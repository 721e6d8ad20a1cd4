"""``-a "modules(…)"``, ``conda(…)``, ``venv(…)``, ``container(…)``: the software that a job sees.

Rule: pure; what is on which host only the job itself finds out, when it starts there.
"""

from __future__ import annotations

import re

from lavad.core.lang.asks import Refused

NAMES = ("modules", "conda", "venv", "container")
RUNNERS = ("apptainer", "singularity", "podman", "unshare")
PULLS = ("missing", "always", "never")
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@~=-]*")
_ORDER = {"modules": 0, "container": 1, "conda": 2, "venv": 3}

Step = tuple[str, ...]
"""Its name, then what it was given; ``container``: image, runner ("" is what is there), pull."""


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
