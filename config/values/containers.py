"""CONTAINER of a queue or application profile: `docker[image(NAME) options(OPTIONS)]`, as LSF 10.1 has it.

Rule: options are words from here on, which no shell reads again.
"""

import re
import shlex

from config.model.container import ANY_IMAGE, RUNNERS, Container
from config.values.values import Scope

_WHOLE = re.compile(r"([a-z][a-z-]*)\s*\[(.*)\]", re.DOTALL)
_KEYS = ("image", "options", "container_io", "job_pre_post")
_WHERE = "--cgroup-parent --cgroups --name --pid --restart --user -u --shm-size"
_LIMITS = (
    "--memory -m --memory-reservation --memory-swap --cpus --cpu-period --cpu-quota --cpu-shares -c --cpuset-cpus --pids-limit"
)
_OURS_WITH_VALUE = frozenset(f"{_WHERE} {_LIMITS}".split())
_OURS = re.compile(r"--detach(=.*)?|-[itP]*d[itP]*")
_AS_IT_IS = re.compile(r"-[it]+|--(interactive|tty|rm)(=true)?")
"""Given by lava where it holds; podman warns in each job of a terminal that is none."""
_LONGEST = 4096


def container(value: str, _: Scope) -> Container:
    """ValueError for what is no container; one of a kind that lava cannot run is a value nevertheless."""
    whole = _WHOLE.fullmatch(value.strip())
    if not whole:
        raise ValueError(f"'{value}' is not docker[image(NAME) options(…)], or the same of podman, apptainer or singularity")
    found = _parts(whole.group(2))
    image, options = found.get("image", "").strip() or ANY_IMAGE, found.get("options", "")
    if image.startswith("-") or len(image.split()) != 1 or len(options) > _LONGEST:
        raise ValueError(f"image({image}) is not the name of an image")
    try:
        words = shlex.split(options)
    except ValueError as wrong:
        raise ValueError(f"options({options}): {wrong}") from None
    kept: list[str] = words
    left_out: list[str] = []
    if RUNNERS.get(whole.group(1)) == "podman":
        kept, left_out = _without_ours(words)
    elif whole.group(1) == "unshare":
        kept, left_out = [], words
    left_out += [f"{key}()" for key in ("container_io", "job_pre_post") if key in found]
    return Container(whole.group(1), image, tuple(kept), value, tuple(left_out))


def _parts(inside: str) -> dict[str, str]:
    """`image(a) options(-v x:(y))` -> what stands in each pair of parentheses."""
    found: dict[str, str] = {}
    rest = inside.strip()
    while rest:
        match = re.match(r"([a-z_]+)\s*\(", rest)
        end = _closing(rest, match.end()) if match else -1
        if not match or match.group(1) not in _KEYS or match.group(1) in found or end < 0:
            raise ValueError(f"'{rest}' is not image(NAME) options(…)")
        found[match.group(1)] = rest[match.end() : end]
        rest = rest[end + 1 :].strip()
    return found


def _closing(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0:
            return position
    return -1


def _without_ours(words: list[str]) -> tuple[list[str], list[str]]:
    """(The others, those of podman that say what is lava's to say: whose a container is, that it is in its job, what it may use).

    It has no control group of its own, in which podman could limit it; it shares the host's memory in /dev/shm.
    """
    kept: list[str] = []
    left_out: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if _AS_IT_IS.fullmatch(word):
            continue
        if _OURS.fullmatch(word):
            left_out.append(word)
        elif name in _OURS_WITH_VALUE:
            left_out.append(word if equals else f"{word} {next(rest, '')}".strip())
        else:
            kept.append(word)
    return kept, left_out
