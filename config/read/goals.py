"""GOALS of lsb.serviceclasses: guarantees, or goals in time with their windows; and CONTROL_ACTION.

Rule, as in LSF: a goal without a window, or with an empty one, is always pursued and the only one of its class; a deadline has
a window. Windows of one goal do not overlap.
"""

import re
from itertools import combinations

from config.model.guarantees import ControlAction, Goal
from config.text.units import WEEK, overlap, week_spans
from config.values import values as v

_GOAL = re.compile(
    r"\s*\[\s*(velocity|throughput|deadline)(?:\s+([0-9]{1,9}))?(?:\s*timeWindow\s*\(([^()\[\]]*)\))?\s*\]\s*", re.IGNORECASE
)
_FORM = "[GUARANTEE], [VELOCITY n timeWindow (…)], [THROUGHPUT n timeWindow (…)], [DEADLINE timeWindow (…)]"


def read_goals(value: str, scope: v.Scope) -> tuple[Goal, ...]:
    """``[GUARANTEE]``, which is (), or goals in time one after the other."""
    if value.strip("[] ").lower() == "guarantee":
        return ()
    found: list[Goal] = []
    at = 0
    while at < len(value):
        match = _GOAL.match(value, at)
        if match is None:
            raise ValueError(_why_not(value[at:].strip()))
        found.append(_goal(match[1].upper(), match[2], match[3], scope))
        at = match.end()
    if len(found) > 1 and not all(goal.windows for goal in found):
        raise ValueError("a goal without a timeWindow is the only one of its class")
    return tuple(found)


def read_control_action(value: str, _: v.Scope) -> ControlAction:
    """``VIOLATION_PERIOD[minutes] CMD [command]``; the command may have brackets of its own."""
    match = re.fullmatch(r"\s*VIOLATION_PERIOD\s*\[\s*([0-9]{1,7})\s*\]\s*CMD\s*\[(.*)\]\s*", value, re.IGNORECASE | re.DOTALL)
    if match is None or not match[2].strip():
        raise ValueError(f"'{value[:60]}' is not VIOLATION_PERIOD[minutes] CMD [command]")
    if not int(match[1]):
        raise ValueError("VIOLATION_PERIOD[0]: it is at least a minute")
    return ControlAction(60 * int(match[1]), match[2].strip())


def _why_not(text: str) -> str:
    if re.match(r"\[\s*guarantee", text, re.IGNORECASE):
        return "[GUARANTEE] does not go with goals in time: give each a service class of its own"
    return f"'{text[:60]}' is none of {_FORM}"


def _goal(kind: str, number: str | None, windows: str | None, scope: v.Scope) -> Goal:
    checked = v.window_list(windows or "", scope)
    if kind == "DEADLINE":
        if number is not None:
            raise ValueError("DEADLINE has no number")
        if not _closes(checked):
            raise ValueError("DEADLINE has no timeWindow that ends")
    elif not int(number or 0):
        raise ValueError(f"{kind} needs a number of jobs above 0")
    if any(overlap(one, other) for one, other in combinations(checked.split(), 2)):
        raise ValueError(f"the windows of timeWindow ({checked}) overlap")
    return Goal(kind.lower(), int(number or 0), checked)  # type: ignore[arg-type]


def _closes(windows: str) -> bool:
    """Whether there are windows, and minutes of the week outside of them."""
    spans = week_spans(tuple(windows.split()))
    return bool(spans) and sum(last - first for first, last in spans) < WEEK
