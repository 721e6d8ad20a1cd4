"""lsload: load of each host, the least loaded first."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.asks import Refused
from lavad.core.states import HostState
from lavad.queries import hostfacts, jobfacts
from lavad.queries.bhosts_long import load_text
from lavad.queries.options import Options
from lavad.queries.request import Request, Shown, out
from lavad.queries.thresholds import BUILT_IN, site_indices

_DEFAULT = ("r15s", "r1m", "r15m", "ut", "pg", "ls", "it", "tmp", "swp", "mem")
_WIDTHS = {"ut": 5, "ls": 4, "io": 6}
_ALIASES = {"cpu": "r1m", "login": "ls", "idle": "it", "swap": "swp"}


def show(request: Request) -> Iterator[Shown]:
    """A line for each host."""
    options = request.options("l w N E s noheader", "R n I")
    if "s" in options:
        yield out("No dynamic shared resources defined \n")
        return
    names = _hosts(request, options)
    indices = _indices(request, options)
    column = 23 if "l" in options else max([15, *map(len, names)] if "w" in options else [15])
    if "noheader" not in options:
        yield out(f"{'HOST_NAME':<{column}} {'status':>6}{''.join(_title(index) for index in indices)}\n")
    for name in names:
        yield out(_row(request, options, name, indices, column))


def _hosts(request: Request, options: Options) -> list[str]:
    view = request.view
    known = hostfacts.all_hosts(view)
    names = request.words or [name for name in known if hostfacts.conf_of(view, name).server]
    for name in names:
        if name not in known:
            raise Refused(f"main: invalid hostname {name}")
    if "R" in options:
        names = hostfacts.fitting(request, list(names), options.text("R"))
        if not names:
            raise Refused("lsload: No host satisfies the resource requirement")
    names = sorted(names, key=lambda name: _weight(request, name))
    count = options.text("n")
    if not count:
        return names
    if not count.isdigit():
        raise Refused(f"lsload: bad number of hosts: {count[:80]}")
    return names[: int(count)] if int(count) else names


def _weight(request: Request, name: str) -> tuple[bool, float, float, str]:
    view = request.view
    load = view.soft.load.get(name, {})
    down = hostfacts.host_of(view, name).state is not HostState.OK
    return down, round(load.get("r15s", 0.0), 1), round(load.get("pg", 0.0), 1), name


def _indices(request: Request, options: Options) -> list[str]:
    extra = site_indices(request.cluster.conf)
    known = [*BUILT_IN, *extra]
    if "I" in options:
        chosen = [_ALIASES.get(name, name) for name in options.text("I").replace(":", " ").split()]
        for name in chosen:
            if name not in known:
                raise Refused("lsload: Unknown resource name", 246)
        return chosen
    return known if "l" in options else list(_DEFAULT)


def _width(index: str) -> int:
    return _WIDTHS.get(index, max(len(index) + 1, 6))


def _title(index: str) -> str:
    return f"{index:>{_width(index)}}"


def _row(request: Request, options: Options, name: str, indices: list[str], column: int) -> str:
    view = request.view
    host = hostfacts.host_of(view, name)
    shown = f"{name:<{column}}" if "w" in options else f"{name:<{column}.{column}}"
    load = view.soft.load.get(name, {})
    if host.state is not HostState.OK or not load:
        return f"{shown} {'unavail':>6}\n"
    busy = set(hostfacts.busy_indices(view, name))
    factor = jobfacts.cpu_factor(view, name)
    cells = []
    for index in indices:
        value = load.get(index)
        if value is None:
            cells.append(f"{'-':>{_width(index)}}")
            continue
        if index in ("r15s", "r1m", "r15m"):
            value = _queue_length(value, options, factor, host.facts.ncpus)
        text = load_text(index, value)
        cells.append(f"{'*' + text if index in busy else text:>{_width(index)}}")
    return f"{shown} {'busy' if busy else 'ok':>6}{''.join(cells)}\n"


def _queue_length(value: float, options: Options, factor: float, cpus: int) -> float:
    """-E: per CPU (effective); -N: that by the CPU factor (normalised)."""
    if "E" in options:
        return max(value - (cpus - 1), 0.0) if cpus > 1 and value > cpus else value / max(cpus, 1)
    if "N" in options:
        return value / max(cpus, 1) / (factor or 1.0)
    return value
