"""The flat sections of a resource requirement: order, rusage, span, same and cu; read, joined and written.

Rule: amounts of memory are kept in MB, other amounts as given, durations in seconds; a section that is written and read again is
the same.
"""

from __future__ import annotations

import re
from itertools import groupby

import msgspec

from lavad.core.lang.resreq.grammar import (
    MAX_AMOUNT,
    MEMORY_NAMES,
    Affinity,
    NotSupported,
    ResReqError,
    plain_number,
    read_number,
    resource_name,
)

Order = tuple[tuple[str, bool], ...]

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ORDER_KEY = re.compile(r"(-?)(!?)(-?)([A-Za-z_]\w*)", re.ASCII)
_DURATION = re.compile(r"(\d{1,9})([smh]?)", re.ASCII)
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_PTILE = re.compile(r"('!'|!|[1-9]\d{0,8})((?:,[\w.\-]+:[1-9]\d{0,8})*)", re.ASCII)
_ARITHMETIC = re.compile(r"[\w)\s][*/+-]|[(]", re.ASCII)
_OF_GPUS = frozenset(("gmodel", "gvendor", "glink", "nvlink", "gtile", "mig", "mode", "mps", "j_exclusive", "block"))
_SECONDS = {"s": 1, "m": 60, "h": 3600, "": 60}


class RusageItem(msgspec.Struct, frozen=True):
    """One reserved resource; `per` is "", task, job or host; `duration` in seconds, None for the job's whole life."""

    name: str
    amount: float
    per: str = ""
    duration: int | None = None
    decay: bool | None = None


class Rusage(msgspec.Struct, frozen=True):
    """One of the alternatives that `||` separates: the resources that it reserves."""

    uses: tuple[RusageItem, ...] = ()

    def amount(self, name: str) -> float:
        return next((use.amount for use in self.uses if use.name == name), 0.0)

    def get(self, name: str) -> RusageItem | None:
        return next((use for use in self.uses if use.name == name), None)


class Span(msgspec.Struct, frozen=True):
    """kind hosts (n 1 or -1), ptile, block or stripe; n 0 is `ptile='!'` or a bare `stripe`; "" with gtile alone."""

    kind: str = ""
    n: int = 0
    by_type: tuple[tuple[str, int], ...] = ()
    gtile: str = ""


class Cu(msgspec.Struct, frozen=True):
    """Placement by compute unit."""

    type: str = ""
    pref: str = ""
    maxcus: int | None = None
    usablecuslots: int | None = None
    balance: bool = False
    excl: bool = False


def parse_order(text: str) -> Order:
    """A pair (name, reversed) for each word; `!name` keeps its `!`. Raises ResReqError."""
    keys = []
    for word in text.split(":"):
        match = _ORDER_KEY.fullmatch(word.strip())
        if match is None and _ARITHMETIC.search(word):
            raise NotSupported(f"order[{text.strip()}], arithmetic,")
        if match is None:
            raise ResReqError(f"order[{text.strip()}]")
        keys.append((match[2] + resource_name(match[4]), bool(match[1]) != bool(match[3])))
    return tuple(keys)


def parse_rusage(text: str, unit_mb: float = 1.0) -> tuple[Rusage, ...]:
    """Alternatives by `||`; a comma separates resources with a duration and decay of their own."""
    return tuple(_alternative(part, unit_mb) for part in text.split("||"))


def _alternative(text: str, unit_mb: float) -> Rusage:
    uses: list[RusageItem] = []
    begin = 0
    for group in text.split(","):
        fresh: list[RusageItem] = []
        options: dict[str, object] = {}
        for word in group.split(":"):
            name, _, value = (piece.strip() for piece in word.partition("="))
            _check_phases(name, value)
            if name in ("duration", "decay"):
                options[name] = _duration(value) if name == "duration" else _decay(value)
            else:
                fresh.append(_use(name, value, unit_mb))
        # OpenLava's `mem=20,duration=60`: options without a resource belong to the resources before them
        begin = len(uses) if fresh else begin
        uses.extend(fresh)
        uses[begin:] = [msgspec.structs.replace(use, **options) for use in uses[begin:]]
    if len({use.name for use in uses}) != len(uses) or not uses:
        raise ResReqError(f"rusage[{text.strip()}], each resource once")
    return Rusage(tuple(uses))


def _check_phases(name: str, value: str) -> None:
    """Reservations of several phases (``mem=(400 200):duration=(10 5)``), thresholds and GPU options: LSF's alone."""
    if value.startswith("("):
        raise NotSupported(f"rusage[{name}={value}], a reservation in phases,")
    if name == "threshold":
        raise NotSupported("rusage[threshold]")
    if name in _OF_GPUS and not value[:1].isdigit():
        raise NotSupported(f"rusage[{name}] (bsub -gpu has {name}=)")


def _use(name: str, value: str, unit_mb: float) -> RusageItem:
    number, slash, per = value.partition("/")
    if not _NAME.fullmatch(name) or (slash and per.strip() not in ("task", "job", "host")):
        raise ResReqError(f"rusage {name}={value}")
    try:
        amount, has_unit = read_number(number.strip())
    except ValueError:
        raise ResReqError(f"rusage {name}={value}") from None
    name = resource_name(name)
    amount = round(amount * (unit_mb if name in MEMORY_NAMES and not has_unit else 1.0), 6)
    if amount >= MAX_AMOUNT:
        raise ResReqError(f"rusage {name}={value} is too large")
    return RusageItem(name, amount, per.strip())


def _duration(value: str) -> int:
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ResReqError(f"rusage duration={value}")
    return int(match[1]) * _SECONDS[match[2]]


def _decay(value: str) -> bool:
    if value not in ("0", "1"):
        raise ResReqError(f"rusage decay={value}")
    return value == "1"


def parse_span(text: str) -> Span:
    rest, gtile = _without_gtile("".join(text.split()))
    key, _, value = rest.partition("=")
    if not rest and gtile:
        return Span(gtile=gtile)
    if key == "hosts" and value in ("1", "-1"):
        return Span("hosts", int(value), gtile=gtile)
    if rest == "stripe":
        return Span("stripe", gtile=gtile)
    if key in ("block", "stripe") and _COUNT.fullmatch(value):
        return Span(key, int(value), gtile=gtile)
    match = _PTILE.fullmatch(value) if key == "ptile" else None
    if match is None:
        raise ResReqError(f"span[{text.strip()}]")
    pairs = [pair.rpartition(":") for pair in match[2].split(",")[1:]]
    count = 0 if "!" in match[1] else int(match[1])
    return Span("ptile", count, tuple((name, int(number)) for name, _, number in pairs), gtile)


def _without_gtile(text: str) -> tuple[str, str]:
    match = re.search(r"(?:^|:)gtile=('!'|!|[1-9]\d{0,8})(?=$|:)", text, re.ASCII)
    if match is None:
        return text, ""
    return (text[: match.start()] + text[match.end() :]).strip(":"), match[1].strip("'")


def parse_same(text: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in text.split(":"))
    if not all(_NAME.fullmatch(name) for name in names):
        raise ResReqError(f"same[{text.strip()}]")
    return tuple(dict.fromkeys(resource_name(name) for name in names))


def parse_cu(text: str) -> Cu:
    found: dict[str, bool | int | str] = {}
    for word in text.split(":"):
        key, equals, value = (piece.strip() for piece in word.partition("="))
        if key in ("balance", "excl") and not equals:
            found[key] = True
        elif key in ("maxcus", "usablecuslots") and _COUNT.fullmatch(value):
            found[key] = int(value)
        elif (key == "type" and (_NAME.fullmatch(value) or _COUNT.fullmatch(value))) or (
            key == "pref" and value in ("minavail", "maxavail", "config", "bestfit")
        ):
            found[key] = value
        else:
            raise ResReqError(f"cu[{text.strip()}]")
    return msgspec.convert(found, Cu)


def join_rusage(outer: tuple[Rusage, ...], inner: tuple[Rusage, ...]) -> tuple[Rusage, ...]:
    """Merged resource by resource: the inner wins, and takes a missing duration or decay from the outer."""
    if not outer or not inner:
        return inner or outer
    if len(outer) > 1 and len(inner) > 1:
        raise ResReqError("rusage alternatives (||) in more than one place")
    return tuple(_joined(first, second) for first in outer for second in inner)


def _joined(outer: Rusage, inner: Rusage) -> Rusage:
    uses = {use.name: use for use in outer.uses}
    for use in inner.uses:
        old = uses.get(use.name, use)
        uses[use.name] = msgspec.structs.replace(
            use,
            duration=old.duration if use.duration is None else use.duration,
            decay=old.decay if use.decay is None else use.decay,
        )
    return Rusage(tuple(uses.values()))


def order_text(order: Order) -> str:
    return ":".join(f"{'-' if reverse else ''}{name}" for name, reverse in order)


def rusage_text(rusage: tuple[Rusage, ...], digits: str = "") -> str:
    return "||".join(_alternative_text(alternative, digits) for alternative in rusage)


def _alternative_text(rusage: Rusage, digits: str) -> str:
    groups = groupby(rusage.uses, key=lambda use: (use.duration, use.decay))
    return ",".join(
        ":".join([*(_use_text(use, digits) for use in uses), *_options_text(duration, decay)])
        for (duration, decay), uses in groups
    )


def _use_text(use: RusageItem, digits: str) -> str:
    amount = f"{use.amount:{digits}}" if digits else plain_number(use.amount)
    return f"{use.name}={amount}" + (f"/{use.per}" if use.per else "")


def _options_text(duration: int | None, decay: bool | None) -> list[str]:
    words = []
    if duration is not None:
        words.append(f"duration={duration}s" if duration % 60 else f"duration={duration // 60}")
    if decay is not None:
        words.append(f"decay={decay:d}")
    return words


def span_text(span: Span) -> str:
    words = []
    if span.kind == "ptile":
        words.append("ptile=" + ",".join([str(span.n or "'!'"), *(f"{name}:{n}" for name, n in span.by_type)]))
    elif span.kind:
        words.append(f"{span.kind}={span.n}" if span.n else span.kind)
    if span.gtile:
        words.append("gtile=" + ("'!'" if span.gtile == "!" else span.gtile))
    return ":".join(words)


def cu_text(cu: Cu) -> str:
    words = [f"{key}={value}" for key in ("type", "pref", "maxcus", "usablecuslots") if (value := getattr(cu, key))]
    return ":".join([*words, *(flag for flag in ("balance", "excl") if getattr(cu, flag))])


def affinity_text(affinity: Affinity) -> str:
    same = f",same={affinity.same}" if affinity.same else ""
    exclusive = f",exclusive=({','.join(affinity.exclusive)})" if affinity.exclusive else ""
    unit = f"{affinity.unit}({affinity.count}{same}{exclusive})*{affinity.times}"
    named = ("cpubind", "membind", "distribute")
    return ":".join([unit, *(f"{key}={value}" for key in named if (value := getattr(affinity, key)))])
