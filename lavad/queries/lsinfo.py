"""lsinfo: the resources, host types and host models that the cluster knows."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.asks import Refused
from lavad.queries import hostfacts, jobfacts
from lavad.queries.request import Request, Shown, err, leave, out

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
    ("slots", "Numeric", "Dec", "Available slots"),
    ("maxslots", "Numeric", "Dec", "Most slots (MXJ)"),
    ("server", "Boolean", "N/A", "LSF server host"),
)
_STRINGS = (
    ("type", "String", "N/A", "Host type"),
    ("model", "String", "N/A", "Host model"),
    ("status", "String", "N/A", "Host status"),
    ("hname", "String", "N/A", "Host name"),
)
_KINDS = {"numeric": "Numeric", "boolean": "Boolean", "string": "String"}


def show(request: Request) -> Iterator[Shown]:
    """The tables asked for, all three by default."""
    options = request.options("l r m M t w")
    asked = [letter for letter in "rtm" if letter in options or (letter == "m" and "M" in options)]
    if request.words and not asked:
        asked = ["r"]
    first = True
    for letter in asked or ["r", "t", "m"]:
        if not first:
            yield out("\n")
        first = False
        if letter == "r":
            yield from _resources(request)
        elif letter == "t":
            yield from _types(request)
        else:
            yield from _models(request)


def _resources(request: Request) -> Iterator[Shown]:
    rows = _all_resources(request)
    known = {row[0] for row in rows}
    unknown = [word for word in request.words if word not in known]
    if unknown and len(unknown) == len(request.words):
        raise Refused(f"{unknown[0]}: resource name not found")
    yield out("RESOURCE_NAME   TYPE   ORDER  DESCRIPTION\n")
    for name, kind, order, words in rows:
        if not request.words or name in request.words:
            yield out(f"{name:<11} {kind:>9} {order:>5}   {words}\n")
    for word in unknown:
        yield err(f"{word}: resource name not found")
        yield leave(255)


def _all_resources(request: Request) -> list[tuple[str, str, str, str]]:
    found = []
    for resource in request.cluster.conf.resources:
        order = ("Inc" if resource.increasing else "Dec") if resource.kind == "numeric" else "N/A"
        found.append((resource.name, _KINDS.get(resource.kind, "String"), order, resource.description))
    return [*_BUILT_IN, *_STATIC, *found, *_STRINGS]


def _types(request: Request) -> Iterator[Shown]:
    view = request.view
    names = [hostfacts.type_of(view, name) for name in hostfacts.all_hosts(view)]
    yield out("TYPE_NAME\n" + "".join(f"{name}\n" for name in dict.fromkeys(names)))


def _models(request: Request) -> Iterator[Shown]:
    view = request.view
    factors = dict(view.cluster.conf.models)
    kinds: dict[str, str] = {}
    for name in hostfacts.all_hosts(view):
        model = hostfacts.model_of(view, name)
        kinds[model] = hostfacts.type_of(view, name)
        factors.setdefault(model, jobfacts.cpu_factor(view, name))
    yield out("MODEL_NAME      CPU_FACTOR      ARCHITECTURE\n")
    for model, factor in factors.items():
        yield out(f"{model:<15} {factor:>10.2f}      {kinds.get(model, '-')}\n")
