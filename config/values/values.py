"""One function per form of value: text -> typed value, or ValueError with words for the user."""

import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from config.lsfconf import NO, YES
from config.model.gpureq import parse as parse_gpus
from config.model.gpureq import why_not as why_not_gpus
from config.model.queue import FOR_EVER
from config.model.values import (
    Chkpnt,
    Interactive,
    JobAction,
    JobControl,
    Preemption,
    RequeueExit,
    Resizable,
    Shares,
    TaskLimit,
    TerminateWhen,
    parse_exit_values,
)
from config.text.units import duration_s, seconds, size_kb, unit_letter, windows

LARGEST_INT = 2**31 - 1


class Scope(msgspec.Struct, frozen=True):
    """What the meaning of a value depends on: the unit of bare sizes (a letter)."""

    unit: str = "K"


Parser = Callable[[str, Scope], object]


def text(value: str, _: Scope) -> str:
    return value


def gpu_req(value: str, _: Scope) -> str:
    """The text as it stands; ValueError for one that -gpu would not take."""
    why = why_not_gpus(parse_gpus(value))
    if why:
        raise ValueError(why)
    return value


def words(value: str, _: Scope) -> tuple[str, ...]:
    return tuple(value.split())


def window_list(value: str, _: Scope) -> str:
    """The windows of a RUN_WINDOW or DISPATCH_WINDOW line, checked, with single blanks between them."""
    return " ".join(windows(value))


def yes_no(value: str, _: Scope) -> bool:
    if value.lower() not in (*YES, *NO):
        raise ValueError(f"'{value}' is neither Y nor N")
    return value.lower() in YES


def yes_no_or_variable(value: str, scope: Scope) -> bool | str:
    """Y, N, or the name of an environment variable."""
    return value if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) and value.lower() not in (*YES, *NO) else yes_no(value, scope)


def number(least: int = 0, most: int = LARGEST_INT) -> Callable[[str, Scope], int]:
    """A whole number from `least` to `most`."""

    def parse(value: str, _: Scope) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
            raise ValueError(f"'{value}' is not a whole number")
        if not least <= int(value) <= most:
            raise ValueError(f"{value} is not between {least} and {most}")
        return int(value)

    return parse


def real(least: float = 0.0) -> Callable[[str, Scope], float]:
    def parse(value: str, _: Scope) -> float:
        found = _float(value)
        if found < least:
            raise ValueError(f"{value} is less than {least:g}")
        return found

    return parse


def second_count(value: str, _: Scope) -> int:
    return seconds(value)


def minutes(value: str, _: Scope) -> int:
    """`[hours:]minutes` -> seconds."""
    return duration_s(value)


def host_hours(value: str, _: Scope) -> int:
    """Hours, or minutes with an m, in seconds."""
    match = re.fullmatch(r"([0-9]{1,9})([mM]?)", value)
    if not match:
        raise ValueError(f"'{value[:50]}' is not hours, or minutes with an m")
    return int(match[1]) * (60 if match[2] else 3600)


def minutes_or_percent(value: str, _: Scope) -> int:
    """`[hours:]minutes` -> seconds; `n%` of the run limit -> -n."""
    if not value.endswith("%"):
        return duration_s(value)
    if not re.fullmatch(r"[1-9][0-9]?|100", value[:-1]):
        raise ValueError(f"'{value}' is not between 1% and 100%")
    return -int(value[:-1])


PREEMPT_FOR = (
    "LEAST_RUN_TIME",
    "MINI_JOB",
    "OPTIMAL_MINI_JOB",
    "GROUP_JLP",
    "GROUP_MAX",
    "HOST_JLU",
    "USER_JLP",
    "USER_MAX",
)
"""The first three are what lava does."""


def preempt_for(value: str, _: Scope) -> tuple[str, ...]:
    """Whom to preempt: the newest, and as few as will do, as lava always does; of the others `badmin ckconfig` warns."""
    words = tuple(value.split())
    wrong = [word for word in words if word not in PREEMPT_FOR]
    if wrong:
        raise ValueError(f"'{wrong[0][:50]}' is none of {', '.join(PREEMPT_FOR)}")
    return words


def positive_seconds(value: str, _: Scope) -> int:
    if seconds(value) < 1:
        raise ValueError("must be at least 1 second")
    return seconds(value)


def size(value: str, scope: Scope) -> int:
    return size_kb(value, scope.unit)


def choice(*known: str) -> Parser:
    def parse(value: str, _: Scope) -> str:
        if value.upper() not in known:
            raise ValueError(f"'{value}' is none of {', '.join(known)}")
        return value.upper()

    return parse


def choices(*known: str) -> Parser:
    def parse(value: str, _: Scope) -> tuple[str, ...]:
        found = tuple(word.upper() for word in value.split())
        for word in found:
            if word not in known:
                raise ValueError(f"'{word}' is none of {', '.join(known)}")
        return found

    return parse


def terminate_when(value: str, scope: Scope) -> tuple[TerminateWhen, ...]:
    found = choices(*TerminateWhen)(value, scope)
    assert isinstance(found, tuple)
    return tuple(map(TerminateWhen, found))


def interactive(value: str, scope: Scope) -> Interactive:
    """YES, NO, ONLY, Y or N."""
    word = str(choice("YES", "NO", "ONLY", "Y", "N")(value, scope))
    return {"Y": Interactive.YES, "YES": Interactive.YES, "ONLY": Interactive.ONLY}.get(word, Interactive.NO)


def resizable(value: str, scope: Scope) -> Resizable:
    """Y, N or AUTO."""
    word = str(choice("Y", "N", "AUTO", "YES", "NO")(value, scope))
    return {"Y": Resizable.YES, "YES": Resizable.YES, "AUTO": Resizable.AUTO}.get(word, Resizable.NO)


def unit(value: str, _: Scope) -> str:
    return unit_letter(value) + "B"


class Bounds(NamedTuple):
    """`[default] maximum` of one resource limit; `host_spec` is the host or model that a time is given for."""

    default: int | None = None
    maximum: int | None = None
    host_spec: str = ""


def time_limit(value: str, _: Scope) -> Bounds:
    """`[default] maximum`, each `[hours:]minutes[/host or model]`, in seconds; 0 is no limit."""
    times, host_spec = [], ""
    for word in value.split():
        time, slash, spec = word.partition("/")
        if slash and not spec:
            raise ValueError(f"'{word}' names no host behind its '/'")
        times.append(duration_s(time))
        host_spec = spec or host_spec
    default, maximum = _default_and_maximum(times)
    return Bounds(default or None, maximum or None, host_spec)


def one_time(value: str, scope: Scope) -> int:
    """A RUNTIME estimate in seconds, perhaps with a host or model."""
    if len(value.split()) != 1:
        raise ValueError("one value is expected")
    return time_limit(value, scope).maximum or 0


def size_limit(value: str, scope: Scope) -> Bounds:
    """`[default] maximum`, in KB."""
    return Bounds(*_default_and_maximum([size_kb(word, scope.unit) for word in value.split()]))


def count_limit(value: str, scope: Scope) -> Bounds:
    """`[default] maximum`."""
    return Bounds(*_default_and_maximum([_count(word, scope) for word in value.split()]))


def task_limit(value: str, scope: Scope) -> TaskLimit:
    """`[minimum [default]] maximum`; alone it is the maximum, and minimum and default are 1."""
    counts = [_count(word, scope) for word in value.split()]
    if len(counts) not in (1, 2, 3):
        raise ValueError("one, two or three numbers are expected: [minimum [default]] maximum")
    if counts != sorted(counts) or counts[0] < 1:
        raise ValueError(f"'{value}': 1 <= minimum <= default <= maximum does not hold")
    least = counts[0] if len(counts) > 1 else 1
    return TaskLimit(least, counts[1] if len(counts) == 3 else least, counts[-1])


def threshold(value: str) -> tuple[float | None, float | None]:
    """`sched[/stop]`, each a number or empty."""
    parts = [part.strip() for part in value.split("/")]
    if len(parts) > 2:
        raise ValueError(f"'{value}' is not loadSched/loadStop")
    sched, stop = (None if part in ("", "-") else _float(part.removesuffix("%")) for part in [*parts, ""][:2])
    return sched, stop


def chkpnt(value: str, _: Scope) -> Chkpnt:
    parts = value.split()
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"'{value}' is not a folder with a period in minutes")
    if len(parts) == 2 and duration_s(parts[1]) < 1:
        raise ValueError(f"period {parts[1]} is not positive")
    return Chkpnt(parts[0], duration_s(parts[1]) if len(parts) == 2 else None)


def exit_values(value: str, _: Scope) -> tuple[int, ...]:
    return parse_exit_values(value)


def requeue_exit(value: str, _: Scope) -> RequeueExit:
    return RequeueExit.parse(value)


def job_controls(value: str, _: Scope) -> tuple[JobControl, ...]:
    """`SUSPEND[…] RESUME[…] TERMINATE[…]`."""
    found: list[JobControl] = []
    rest = value.strip()
    while rest:
        match = re.match(r"(SUSPEND|RESUME|TERMINATE)\s*\[", rest)
        end = _closing(rest, match.end()) if match else -1
        if not match or end < 0 or not rest[match.end() : end].strip():
            raise ValueError(f"'{value}' is not SUSPEND[…] RESUME[…] TERMINATE[…]")
        found.append(JobControl(JobAction(match.group(1)), rest[match.end() : end].strip()))
        rest = rest[end + 1 :].strip()
    return tuple(found)


def fairshare(value: str, scope: Scope) -> Shares:
    """`USER_SHARES[[name, n] …]`; without any all users have equal shares (LSF)."""
    match = re.fullmatch(r"USER_SHARES\s*\[(.*)\]", value, re.DOTALL)
    if not match:
        raise ValueError(f"'{value}' is not USER_SHARES[[name, shares] …]")
    return shares(match.group(1), scope) if match.group(1).strip() else (("default", 1),)


def shares(value: str, _: Scope) -> Shares:
    """`[name, n] …`, perhaps in one more pair of brackets; one share for several names may be written `[a b, n]`.

    `all` is OpenLava's word for `default`.
    """
    found: list[tuple[str, int]] = []
    outer = re.fullmatch(r"\s*\[(\s*\[.*\]\s*)\]\s*", value, re.DOTALL)
    value = outer.group(1) if outer else value
    for inside in re.findall(r"\[([^\[\]]*)\]", value):
        names, comma, count = inside.rpartition(",")
        if not comma or not names.split() or not re.fullmatch(r"\s*[0-9]{1,9}\s*", count) or int(count) < 1:
            raise ValueError(f"'[{inside}]' is not [name, shares] with 1 to 999999999 shares")
        found += [("default" if name == "all" else name, int(count)) for name in names.replace(",", " ").split()]
    if re.sub(r"\[[^\[\]]*\]", "", value).strip(" ,\t") or not found:
        raise ValueError(f"'{value}' is not [name, shares] …")
    return tuple(found)


def preemption(value: str, _: Scope) -> Preemption:
    """`PREEMPTIVE[q+1 q2] PREEMPTABLE[q3]`, the lists may be missing."""
    rest = re.sub(r"(PREEMPTIVE|PREEMPTABLE)\s*(\[[^\[\]]*\])?", " ", value)
    found = {match[0]: match[1] for match in re.findall(r"(PREEMPTIVE|PREEMPTABLE)\s*(?:\[([^\[\]]*)\])?", value)}
    if rest.strip() or not found:
        raise ValueError(f"'{value}' is not PREEMPTIVE[queue …] PREEMPTABLE[queue …]")
    return Preemption(
        preemptive="PREEMPTIVE" in found,
        preemptable="PREEMPTABLE" in found,
        preempts=_preferred(found.get("PREEMPTIVE", "")),
        preempted_by=_preferred(found.get("PREEMPTABLE", "")),
    )


def _preferred(text: str) -> tuple[tuple[str, int | None], ...]:
    """`low+1 other` -> names and preferences."""
    words = ((word, *word.partition("+")) for word in text.split())
    return tuple((name, int(level)) if level.isdecimal() else (word, None) for word, name, _, level in words)


def reserve_time(value: str, _: Scope) -> int:
    """`MAX_RESERVE_TIME[n]` -> n; without a number it has no end."""
    match = re.fullmatch(r"MAX_RESERVE_TIME\s*(?:\[\s*([0-9]{1,9})\s*\])?", value)
    if not match:
        raise ValueError(f"'{value}' is not MAX_RESERVE_TIME[n]")
    return int(match.group(1) or 0) or FOR_EVER


def priority_over_time(value: str, _: Scope) -> tuple[int, int]:
    """`increment/minutes` -> (increment, seconds)."""
    match = re.fullmatch(r"([0-9]{1,9})\s*/\s*([0-9]{1,9})", value)
    if not match or not int(match.group(2)):
        raise ValueError(f"'{value}' is not increment/minutes")
    return int(match.group(1)), int(match.group(2)) * 60


def scheduling_interval(value: str, _: Scope) -> float:
    """`seconds`, or `n ms`; a second number (the longest cycle) is not used."""
    match = re.fullmatch(r"([0-9]{1,9})(?:\s*(ms))?(?:\s+[0-9]{1,9})?", value)
    if not match:
        raise ValueError(f"'{value}' is not seconds or 'n ms'")
    return int(match.group(1)) / (1000 if match.group(2) else 1)


def enforce(value: str, _: Scope) -> tuple[str, ...]:
    found = tuple(value.lower().split())
    for word in found:
        if word not in ("memory", "cpu", "gpu"):
            raise ValueError(f"'{word}' is none of memory, cpu, gpu")
    return found


def exclusive(value: str, scope: Scope) -> bool:
    """Y, N, or CU and CU[type ...]: jobs may have compute units for themselves (-x with cu[excl]), and hosts too."""
    return bool(re.fullmatch(r"CU(\[[^\[\]]*\])?", value.strip())) or yes_no(value, scope)


def _float(value: str) -> float:
    if not re.fullmatch(r"[+-]?(?:[0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(?:[eE][+-]?[0-9]{1,2})?", value):
        raise ValueError(f"'{value}' is not a number")
    return float(value)


def _count(word: str, scope: Scope) -> int:
    found = number(0)(word, scope)
    assert isinstance(found, int)
    return found


def _default_and_maximum(values: list[int]) -> tuple[int | None, int | None]:
    if len(values) == 1:
        return None, values[0]
    if len(values) != 2:
        raise ValueError("one or two values are expected: [default] maximum")
    if values[0] > values[1]:
        raise ValueError("the default is greater than the maximum")
    return values[0], values[1]


def _closing(value: str, start: int) -> int:
    """Where the bracket closes that opened right before `start`; -1 if it does not."""
    depth = 1
    for position in range(start, len(value)):
        depth += (value[position] == "[") - (value[position] == "]")
        if depth == 0:
            return position
    return -1
