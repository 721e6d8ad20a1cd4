"""lsinfo: the resources, host types and host models that the cluster knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lavad.core.lang.asks import Refused
from lavad.queries.facts import hostfacts, jobfacts
from lavad.queries.frame.request import Request, Shown, err, leave, out

_BUILT_IN = (
    ("r15s", "Numeric", "Inc", "15-second CPU run queue length"),
    ("r1m", "Numeric", "Inc", "1-minute CPU run queue length (alias: cpu)"),
    ("r15m", "Numeric", "Inc", "15-minute CPU run queue length"),
    ("ut", "Numeric", "Inc", "1-minute CPU utilization (0.0 to 1.0)"),
    ("pg", "Numeric", "Inc", "Paging rate (pages/second)"),
    ("io", "Numeric", "Inc", "Disk IO rate (Kbytes/second)"),
    ("ls", "Numeric", "Inc", "Number of login sessions (alias: login)"),
    ("it", "Numeric", "Dec", "Idle time (minutes) (alias: idle)"),
    ("tmp", "Numeric", "Dec", "Disk space in /tmp (Mbytes)"),
    ("swp", "Numeric", "Dec", "Available swap space (Mbytes) (alias: swap)"),
    ("mem", "Numeric", "Dec", "Available memory (Mbytes)"),
)
_STATIC = (
    ("ncpus", "Numeric", "Dec", "Number of CPUs"),
    ("ndisks", "Numeric", "Dec", "Number of local disks"),
    ("maxmem", "Numeric", "Dec", "Maximum memory (Mbytes)"),
    ("maxswp", "Numeric", "Dec", "Maximum swap space (Mbytes)"),
    ("maxtmp", "Numeric", "Dec", "Maximum /tmp space (Mbytes)"),
    ("cpuf", "Numeric", "Dec", "CPU factor"),
    ("ngpus", "Numeric", "Dec", "Number of GPUs"),
    ("rexpri", "Numeric", "N/A", "Remote execution priority"),
    ("slots", "Numeric", "Dec", "Available slots (MBD slots resource)", 0, False),
    ("maxslots", "Numeric", "Dec", "Available MXJ slots (MBD MXJ resource)", 0, False),
    ("server", "Boolean", "N/A", "LSF server host"),
)
_STRINGS = (
    ("type", "String", "N/A", "Host type"),
    ("model", "String", "N/A", "Host model"),
    ("status", "String", "N/A", "Host status"),
    ("hname", "String", "N/A", "Host name"),
)
_INTERVALS = {"it": 30, "tmp": 120, "ls": 30}
"""Seconds between two readings, 15 else."""
_KINDS = {"numeric": "Numeric", "boolean": "Boolean", "string": "String"}


def show(request: Request) -> Iterator[Shown]:
    """The tables asked for, all three by default."""
    options = request.options()
    asked = [letter for letter in "rtm" if letter in options or (letter == "m" and "M" in options)]
    if request.words and not asked:
        asked = ["r"]
    first = True
    for letter in asked or ["r", "t", "m"]:
        if not first:
            yield out("\n")
        first = False
        if letter == "r":
            yield from _resources(request, "l" in options)
        elif letter == "t":
            yield from _types(request)
        else:
            yield from _models(request)


class Known(NamedTuple):
    """A resource as lsinfo shows it."""

    name: str
    kind: str
    order: str
    words: str
    interval: int = 0
    built_in: bool = True
    dynamic: bool = False
    consumable: bool = False
    """What rusage[] may name; LSF releases it when a job is suspended."""


def _resources(request: Request, long: bool) -> Iterator[Shown]:
    rows = _all_resources(request)
    known = {row.name for row in rows}
    unknown = [word for word in request.words if word not in known]
    if unknown and len(unknown) == len(request.words):
        raise Refused(f"{unknown[0]}: resource name not found")
    wanted = [row for row in rows if not request.words or row.name in request.words]
    if long:
        yield out("\n".join(map(_record, wanted)))
    else:
        yield out("RESOURCE_NAME   TYPE   ORDER  DESCRIPTION\n")
        for row in wanted:
            yield out(f"{row.name:<11} {row.kind:>9} {row.order:>5}   {row.words}\n")
    for word in unknown:
        yield err(f"{word}: resource name not found")
        yield leave(255)


def _record(row: Known) -> str:
    """-l: a paragraph."""
    yes = [("Yes" if value else "No") for value in (row.built_in, row.dynamic, row.consumable, row.consumable)]
    return (
        f"RESOURCE_NAME:  {row.name}\nDESCRIPTION: {row.words}\n"
        f"{'TYPE':<7} {'ORDER':>5}  {'INTERVAL':>9} {'BUILTIN':>8} {'DYNAMIC':>8} {'RELEASE':>8} {'CONSUMABLE':>11}\n"
        f"{row.kind:<7} {row.order:>5}  {row.interval:>9} {yes[0]:>8} {yes[1]:>8} {yes[2]:>8} {yes[3]:>11}\n"
    )


def _all_resources(request: Request) -> list[Known]:
    """In LSF's order: load indices, numbers, booleans and strings, each kind with the site's behind the built-in ones."""
    sites: dict[str, list[Known]] = {"index": [], "numeric": [], "boolean": [], "string": []}
    for resource in request.cluster.conf.resources:
        numeric = resource.kind == "numeric"
        order = ("Inc" if resource.increasing else "Dec") if numeric else "N/A"
        kind = "index" if numeric and resource.interval and not resource.locations else resource.kind
        sites.setdefault(kind, []).append(
            Known(
                resource.name,
                _KINDS.get(resource.kind, "String"),
                order,
                resource.description,
                resource.interval,
                False,
                bool(resource.interval),
                numeric and resource.consumable,
            )
        )
    indices = [Known(*row, _INTERVALS.get(row[0], 15), True, True, True) for row in _BUILT_IN]
    view = request.view
    gpus = any(hostfacts.host_of(view, name).facts.gpus for name in hostfacts.all_hosts(view))
    static = [Known(*row) for row in _STATIC if gpus or row[0] != "ngpus" or "ngpus" in request.words]
    return [
        *indices,
        *sites["index"],
        *static,
        *sites["boolean"],
        *(Known(*row) for row in _STRINGS),
        *sites["string"],
        *sites["numeric"],
    ]


def _types(request: Request) -> Iterator[Shown]:
    view = request.view
    names = [hostfacts.type_of(view, name) for name in hostfacts.all_hosts(view)]
    yield out("TYPE_NAME\n" + "".join(f"{name}\n" for name in dict.fromkeys(names)))


def _models(request: Request) -> Iterator[Shown]:
    view = request.view
    factors = dict(view.cluster.conf.models)
    built = dict(view.params.architectures)
    kinds: dict[str, str] = {}
    for name in hostfacts.all_hosts(view):
        model = hostfacts.model_of(view, name)
        kinds[model] = hostfacts.type_of(view, name)
        factors.setdefault(model, jobfacts.cpu_factor(view, name))
    yield out("MODEL_NAME      CPU_FACTOR      ARCHITECTURE\n")
    for model, factor in factors.items():
        yield out(f"{model:<16}    {factor:>6.2f}      {built.get(model) or kinds.get(model, '-')}\n")
