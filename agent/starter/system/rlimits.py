"""Resource limits of a part: lowered, or raised as far as the kernel allows; they never fail a part.

Rule: soft limits are set in the shepherd around the start and restored afterwards; hard limits cannot be restored, so they are
set in a forked child.
"""

from __future__ import annotations

import resource
from typing import ClassVar, NamedTuple

from agent.starter.protocol.part import ResourceLimits

INFINITY = resource.RLIM_INFINITY
# A shepherd that lowers these for itself may fail to start the child for lack of memory.
_NOT_IN_SHEPHERD = frozenset({resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_NPROC})
_SMALL_STACK = 1 << 20

Limit = tuple[int, int, int]


class Limits(NamedTuple):
    """The limits to set for a start, those to restore after it, and whether they must be set in a forked child."""

    wanted: list[Limit]
    before: list[Limit]
    in_child: bool


NO_CHANGE = Limits([], [], False)


class _Tasks:
    """What tasks get where nothing else is asked for, beside what the daemons need."""

    limits: ClassVar[dict[str, tuple[int | None, ...]]] = {}


def raise_open_files() -> None:
    """The starter and its shepherds have as many open files as the hard limit allows; tasks keep the former soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        keep_open_files(soft)
        apply([(resource.RLIMIT_NOFILE, hard, hard)])


def keep_open_files(soft: int) -> None:
    """Tasks get this soft limit of open files, -1: that of this process."""
    _Tasks.limits = {} if soft < 0 else {"NOFILE": (soft, None)}


def open_files() -> int:
    """The soft limit of open files that is kept for tasks, -1: theirs is that of the shepherd."""
    return next((soft for soft, _ in _Tasks.limits.values() if soft is not None), -1)


def stack() -> int:
    """The soft limit of stacks, -1: there is none."""
    return resource.getrlimit(resource.RLIMIT_STACK)[0]


def set_stack(soft: int) -> None:
    """Set it again: the kernel lowers it where a process has another effective group than its own at the start of a program."""
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    apply([(resource.RLIMIT_STACK, soft, hard)])


def _order(value: int) -> float:
    return float("inf") if value == INFINITY or value < 0 else value


def clamp(asked: ResourceLimits) -> Limits:
    """The requested limits that differ from the present ones, as far as allowed. Unknown names are ignored; -1: unlimited.

    To them come those that are kept for tasks.
    """
    wanted: list[Limit] = []
    before: list[Limit] = []
    in_child = False
    for name, pair in {**_Tasks.limits, **asked}.items():
        number = getattr(resource, "RLIMIT_" + name.upper().removeprefix("RLIMIT_"), None)
        if number is None:
            continue
        soft_now, hard_now = resource.getrlimit(number)
        soft_asked = pair[0] if pair and pair[0] is not None else -1
        hard_asked = pair[1] if len(pair) > 1 and pair[1] is not None else -1
        hard = min((hard_asked, hard_now), key=_order)
        soft = min((soft_asked, hard), key=_order)
        hard, soft = (INFINITY if v < 0 else int(v) for v in (hard, soft))
        if (soft, hard) != (soft_now, hard_now):
            wanted.append((number, soft, hard))
            before.append((number, soft_now, hard_now))
            in_child = in_child or hard != hard_now or _too_much_for_shepherd(number, soft)
    return Limits(wanted, before, in_child)


def _too_much_for_shepherd(number: int, soft: int) -> bool:
    return number in _NOT_IN_SHEPHERD or (number == resource.RLIMIT_STACK and _order(soft) < _SMALL_STACK)


def apply(limits: list[Limit]) -> None:
    """Set the limits; one that the kernel refuses stays as it is."""
    for number, soft, hard in limits:
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            continue
