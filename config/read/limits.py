"""lsb.resources: Limit sections -> Limit."""

import re
from collections.abc import Iterable

from config.model.cluster import GPU_RESOURCES, Limit, ResourceConfig
from config.model.problems import Place, Problems
from config.read.guarantees import POOL_SECTION
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import Table, fill, shortened
from config.values.names import host_words
from config.values.without_effect import KNOWN

CONSUMERS = (
    "USERS",
    "PER_USER",
    "HOSTS",
    "PER_HOST",
    "QUEUES",
    "PER_QUEUE",
    "PROJECTS",
    "PER_PROJECT",
    "APPS",
    "PER_APP",
)
LIMIT: Table = {
    **dict.fromkeys(CONSUMERS, v.words),
    **dict.fromkeys(("HOSTS", "PER_HOST"), host_words),
    "SLOTS": v.number(0),
    "SLOTS_PER_PROCESSOR": v.real(),
    "JOBS": v.number(0),
}
METHODS = {"PER_TASK": "task", "PER_SLOT": "task", "PER_JOB": "job", "PER_HOST": "host"}
SIZES = ("MEM", "SWP", "TMP")


def read_limits(sections: list[Section], scope: v.Scope, problems: Problems) -> tuple[tuple[Limit, Place], ...]:
    """Each limit and where it stands."""
    found: dict[str, tuple[Limit, Place]] = {}
    for section in sections:
        if section.name.lower() in ("reservationusage", POOL_SECTION):
            continue
        if section.name.lower() != "limit":
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
            continue
        for row in section.rows:
            limit = _read_limit(row, f"limit{len(found) + 1}", scope, problems)
            if limit is None:
                continue
            if limit.name in found:
                problems.error(row.place, f"limit {shortened(limit.name)} is defined twice; the first one holds")
            found.setdefault(limit.name, (limit, row.place))
    return tuple(found.values())


def read_methods(sections: list[Section], problems: Problems) -> tuple[tuple[str, str], ...]:
    """ReservationUsage: resource and what rusage[] of it is for where it does not say: task, job or host."""
    found: dict[str, str] = {}
    for row in [row for section in sections if section.name.lower() == "reservationusage" for row in section.rows]:
        name, method = row.text("RESOURCE"), row.text("METHOD").upper()
        owner = f"reservation usage {shortened(name) or '-'}"
        fill(row, {"RESERVE": v.yes_no}, v.Scope(), problems, owner, {"RESOURCE", "METHOD"})
        if name and METHODS.get(method):
            found[name] = METHODS[method]
        elif method:
            problems.error(row.place, f"{owner}: METHOD '{shortened(method)}' is none of {', '.join(METHODS)}")
    return tuple(found.items())


def reservable(resources: Iterable[ResourceConfig]) -> frozenset[str]:
    """What RESOURCE of a limit may name: what rusage[] reserves, of lsf.shared or built in, and GPUs."""
    numeric = (one for one in resources if one.type == "Numeric" and not (one.interval and one.increasing))
    return frozenset((*(size.lower() for size in SIZES), *GPU_RESOURCES, *(one.name for one in numeric)))


def _read_limit(row: Row, unnamed: str, scope: v.Scope, problems: Problems) -> Limit | None:
    name = row.text("NAME") or unnamed
    owner = f"limit {shortened(name)}"
    fields = fill(row, LIMIT, scope, problems, owner, {"NAME", "RESOURCE", *SIZES})
    amounts, percent = _amounts(row, owner, scope, problems)
    for plain, each in zip(CONSUMERS[::2], CONSUMERS[1::2], strict=True):
        if row.text(plain) and row.text(each):
            problems.error(row.place, f"{owner}: {plain} and {each} exclude each other")
            return None
    if row.text("SLOTS_PER_PROCESSOR") and not row.text("PER_HOST"):
        problems.error(row.place, f"{owner}: SLOTS_PER_PROCESSOR needs PER_HOST")
        return None
    if percent and not row.text("PER_HOST"):
        # LSF ignores such a section
        place = row.cells[percent[0].upper()].place
        problems.warn(place, f"{owner}: a percentage needs PER_HOST: this limit has no effect")
        return None
    bounds = ("slots", "slots_per_processor", "jobs")
    if KNOWN["lsb.resources"].intersection(row.cells) and not amounts and not any(field in fields for field in bounds):
        return None
    if not amounts and not any(field in fields for field in bounds):
        problems.error(row.place, f"{owner} bounds nothing")
        return None
    for plain, each in zip(CONSUMERS[::2], CONSUMERS[1::2], strict=True):
        listed = fields.pop(each.lower(), ())
        fields[plain.lower()] = fields.pop(plain.lower(), ()) + listed
        fields[each.lower()] = bool(listed)
    mem = amounts.pop("mem", None)
    return Limit(name=name, mem=mem, resources=tuple(amounts.items()), percent=tuple(percent), **fields)


def _amounts(row: Row, owner: str, scope: v.Scope, problems: Problems) -> tuple[dict[str, float], list[str]]:
    """In MB: MEM, SWP, TMP (bare numbers are MB unless LSF_UNIT_FOR_LIMITS is set) and RESOURCE."""
    amounts: dict[str, float] = {}
    percent: list[str] = []
    for key in SIZES:
        value = row.text(key)
        if not value:
            continue
        try:
            amounts[key.lower()] = _amount(value, scope)
        except ValueError as wrong:
            problems.error(row.cells[key].place, f"{owner}: {key}: {shortened(str(wrong))}")
        if value.endswith("%"):
            percent.append(key.lower())
    listed = row.text("RESOURCE")
    pairs = re.findall(r"\[\s*([A-Za-z_]\w*)\s*,\s*([0-9]{1,15}(?:\.[0-9]{1,6})?)\s*\]", listed)
    if listed and (not pairs or re.sub(r"\[[^\[\]]*\]", "", listed).strip(" ,\t") or listed.count("[") != len(pairs)):
        problems.error(row.cells["RESOURCE"].place, f"{owner}: RESOURCE '{shortened(listed)}' is not [name, amount] …")
        return amounts, percent
    # as in rusage[], sizes are MB here
    amounts |= {name: float(amount) for name, amount in pairs}
    return amounts, percent


def _amount(value: str, scope: v.Scope) -> float:
    if not value.endswith("%"):
        return v.size(value, scope) / 1024
    percent = v.real()(value[:-1], scope)
    if percent > 100:
        raise ValueError(f"{value} is more than 100%")
    return percent
