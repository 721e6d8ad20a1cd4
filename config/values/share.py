"""Values of the parameters that decide who is served first: APS_PRIORITY, DOMINANT_RESOURCES, DISPATCH_ORDER."""

import os
import re
from typing import NamedTuple

from config.model.values import SUBFACTORS, Aps
from config.values.values import Scope, number

FACTORS = ("FS", *SUBFACTORS, *(name for names in SUBFACTORS.values() for name in names))
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 3600.0}
_RESOURCES = {"slots": "slots", "mem": "mem", "gpus": "gpus", "ngpus": "gpus", "ngpus_physical": "gpus"}


def aps_priority(value: str, _: Scope) -> Aps:
    """`WEIGHT[[factor, n] …] LIMIT[[factor, n] …] GRACE_PERIOD[[factor, n[s|m|h]] …]`."""
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    rest = value.strip()
    while rest:
        match = re.match(r"(WEIGHT|LIMIT|GRACE_PERIOD)\s*\[((?:\s*\[[^\[\]]*\]\s*,?)*)\s*\]\s*", rest)
        if not match or match[1] in found:
            raise ValueError(f"'{value}' is not WEIGHT[[factor, n] …] LIMIT[…] GRACE_PERIOD[…]")
        found[match[1]] = tuple(_factor(inside, match[1]) for inside in re.findall(r"\[([^\[\]]*)\]", match[2]))
        rest = rest[match.end() :]
    if not found.get("WEIGHT"):
        raise ValueError(f"'{value}' gives no factor a WEIGHT")
    return Aps(weights=found["WEIGHT"], limits=found.get("LIMIT", ()), graces=found.get("GRACE_PERIOD", ()))


def _factor(inside: str, kind: str) -> tuple[str, float]:
    name, _, text = (word.strip() for word in inside.partition(","))
    match = re.fullmatch(r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)", text)
    if name.upper() not in FACTORS:
        raise ValueError(f"'{name}' is no factor: {', '.join(FACTORS)}")
    if not match or (match[2] and kind != "GRACE_PERIOD") or float(match[1]) == 0:
        raise ValueError(f"'[{inside}]' is not [factor, number other than 0]")
    number = float(match[1])
    if kind != "WEIGHT" and number < 0:
        raise ValueError(f"'[{inside}]': a {kind} cannot be negative")
    return name.upper(), number * _UNITS[match[2]] if kind == "GRACE_PERIOD" else number


def dominant(value: str, _: Scope) -> tuple[str, ...]:
    """Resources that a dominant share is of; Y: all."""
    if value.upper() in ("Y", "YES"):
        return ("slots", "mem", "gpus")
    if value.upper() in ("N", "NO"):
        return ()
    words = value.replace(",", " ").split()
    wrong = [word for word in words if word not in _RESOURCES]
    if wrong:
        raise ValueError(f"'{wrong[0]}' is none of slots, mem, gpus")
    return tuple(dict.fromkeys(_RESOURCES[word] for word in words))


class Owned(NamedTuple):
    """What a queue owns of slots and GPUs; None: nothing is said of these."""

    slots: int | None = None
    gpus: int | None = None


def weight(value: str, scope: Scope) -> Owned:
    """`2`, of slots and GPUs alike, or `slots:2 gpus:3`."""
    found = _owned(value, scope, 1)
    return found if ":" in value else Owned(found.slots, found.slots)


def amounts(value: str, scope: Scope) -> Owned:
    """`8`, of slots, or `slots:8 gpus:4`."""
    return _owned(value, scope, 0)


def _owned(value: str, scope: Scope, least: int) -> Owned:
    read = number(least)
    if ":" not in value:
        return Owned(slots=read(value, scope))
    found: dict[str, int] = {}
    for word in value.replace(",", " ").split():
        name, _, amount = word.partition(":")
        name = _RESOURCES.get(name, name)
        if name not in Owned._fields or name in found:
            raise ValueError(f"'{value}' is not n, or slots:n gpus:n")
        found[name] = read(amount, scope)
    return Owned(**found)


def queue_names(value: str, _: Scope) -> tuple[str, ...]:
    """`q1 q2` or `"q1 q2"`."""
    return tuple(value.replace('"', " ").replace(",", " ").split())


POLICIES = ("fcfs", "fair", "gang", "shortest", "smallest", "largest")


def scheduler(value: str, _: Scope) -> str:
    """A built-in policy, or the path of a Python file that only root or this user may write."""
    if value in POLICIES:
        return value
    if not value.startswith("/") or not value.endswith(".py"):
        raise ValueError(f"'{value}' is no policy: {', '.join(POLICIES)}, or /path/FILE.py")
    try:
        state = os.stat(value)
        with open(value, "rb") as file:
            compile(file.read(1 << 20), value, "exec")
    except (OSError, SyntaxError, ValueError) as wrong:
        raise ValueError(f"{value}: {wrong}") from None
    if state.st_uid not in (0, os.getuid()) or state.st_mode & 0o022:
        raise ValueError(f"{value}: others than its owner, root or the administrator, may write it")
    return value
