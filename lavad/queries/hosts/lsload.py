"""lsload: the load of each host, the least loaded first; lsplace: hosts where tasks would be well placed now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from config.model.values import LOAD_INDICES
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import HostState
from lavad.queries.facts import hostfacts, jobfacts
from lavad.queries.facts.load import MB, load_text, site_indices
from lavad.queries.frame import columns, formats
from lavad.queries.frame.request import Options, Request, Shown, out
from lavad.queries.hosts import gpuload
from proto.numbers import find_number

_DEFAULT = ("r15s", "r1m", "r15m", "ut", "pg", "ls", "it", "tmp", "swp", "mem")
DEFAULT = "host_name status " + " ".join(_DEFAULT)
_WIDTHS = {"ut": 5, "ls": 4, "io": 6}
_ALIASES = {"cpu": "r1m", "login": "ls", "idle": "it", "swap": "swp"}


def show(request: Request) -> Iterator[Shown]:
    """lsload: a line for each host."""
    options = request.options()
    columns.refuse_json_with(options, "s", "gpu", "gpuload")
    if "s" in options:
        yield out("No dynamic shared resources defined \n")
        return
    names = _hosts(request, options)
    if options.any("gpu", "gpuload"):
        header = "noheader" not in options
        if "gpuload" in options:
            yield from gpuload.show_load(request, names, header, "w" in options)
        else:
            yield from gpuload.show_sums(request, names, header)
        return
    given = columns.find_format(request, options, DEFAULT, "l", "w", "I", "N", "E")
    if given is not None:
        yield from columns.show_rows(
            options, "HOSTS", columns.row_fields([*table(request, options), *gpuload.fields(request, names)]), given, list(names)
        )
        return
    indices = _indices(request, options)
    column = 23 if "l" in options else max([15, *map(len, names)] if "w" in options else [15])
    if "noheader" not in options:
        yield out(f"{'HOST_NAME':<{column}} {'status':>6}{''.join(_title(index) for index in indices)}\n")
    for name in names:
        yield out(_row(request, options, name, indices, column))


def _hosts(request: Request, options: Options) -> list[str]:
    view = request.view
    known = hostfacts.all_hosts(view)
    names = hostfacts.without_groups(view, request.words)
    if not request.words:
        names = [name for name in known if hostfacts.conf_of(view, name).server]
    for name in names:
        if name not in known:
            raise Refused(f"main: invalid hostname {name}")
    if "R" in options:
        names = hostfacts.fitting(request, list(names), options.text("R"))
        if not names:
            raise Refused("lsload: No host satisfies the resource requirement")
    names = sorted(names, key=lambda name: _weight(request, name))
    return names[: _host_count(options, "n") or None]


def _weight(request: Request, name: str) -> tuple[bool, float, float, str]:
    return hostfacts.host_of(request.view, name).state is not HostState.OK, *_load_order(request, name)


def _indices(request: Request, options: Options) -> list[str]:
    extra = site_indices(request.cluster.conf)
    known = [*LOAD_INDICES, *extra]
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
    shown = f"{name:<{column}}" if "w" in options else f"{name:<{column}.{column}}"
    status = _status(request, name)
    if status == "unavail":
        return f"{shown} {'unavail':>6}\n"
    busy = set(hostfacts.busy_indices(view, name))
    cells = []
    for index in indices:
        text = _text(request, options, name, index) or "-"
        cells.append(f"{'*' + text if index in busy and text != '-' else text:>{_width(index)}}")
    return formats.joined(f"{shown} {status:>6}", *cells) + "\n"


def _status(request: Request, name: str) -> str:
    view = request.view
    if hostfacts.host_of(view, name).state is not HostState.OK or not view.soft.load.get(name):
        return "unavail"
    return "busy" if hostfacts.busy_indices(view, name) else "ok"


def _text(request: Request, options: Options, name: str, index: str) -> str:
    """The value of an index, "" where the host does not report it."""
    value = request.view.soft.load.get(name, {}).get(index)
    if value is None or _status(request, name) == "unavail":
        return ""
    if index in ("r15s", "r1m", "r15m"):
        cpus = hostfacts.host_of(request.view, name).facts.ncpus
        value = _queue_length(value, options, jobfacts.cpu_factor(request.view, name), cpus)
    return load_text(index, value)


def table(request: Request, options: Options) -> Iterator[tuple[str, int, Callable[[str, str], object]]]:
    """The fields of -o."""
    yield "HOST_NAME hname", 20, lambda name, unit: name
    yield "status", 15, lambda name, unit: _status(request, name)
    for index in (*LOAD_INDICES, *site_indices(request.cluster.conf)):
        names = " ".join([index, *(alias for alias, own in _ALIASES.items() if own == index)])
        yield names, 10, _reader(request, options, index)


def _reader(request: Request, options: Options, index: str) -> Callable[[str, str], object]:
    def read(name: str, unit: str) -> object:
        value = request.view.soft.load.get(name, {}).get(index)
        if index in MB and value is not None and _status(request, name) != "unavail":
            return formats.unit_text(value * 1024, unit) if unit else f"{value:.1f}M"
        return _text(request, options, name, index)

    return read


def _queue_length(value: float, options: Options, factor: float, cpus: int) -> float:
    """-E: per CPU (effective); -N: that by the CPU factor (normalised)."""
    if "E" in options:
        return max(value - (cpus - 1), 0.0) if cpus > 1 and value > cpus else value / max(cpus, 1)
    if "N" in options:
        return value / max(cpus, 1) / (factor or 1.0)
    return value


FEW = "lsplace: Not enough host(s) currently eligible"


def show_places(request: Request) -> Iterator[Shown]:
    """lsplace: one line of names, a blank behind each."""
    options = request.options()
    least, most = _host_count(options, "n"), _host_count(options, "w")
    chosen = _places(request, options.text("R"), request.words, "L" in options)
    wanted = 0 if 0 in (least, most) else max(least or 1, most or 1)
    if not chosen or len(chosen) < (least or 1):
        raise Refused(FEW, 1)
    yield out("".join(f"{name} " for name in (chosen[:wanted] if wanted else chosen)) + "\n")


def _host_count(options: Options, name: str) -> int | None:
    if name not in options:
        return None
    count = find_number(options.text(name))
    if count is None:
        raise Refused(f"{options.command}: bad number of hosts: {options.text(name)[:80]}")
    return count


def _places(request: Request, resreq: str, words: list[str], packed: bool) -> list[str]:
    """Names in the order of placement; ``packed``: as few hosts as possible."""
    view = request.view
    known = hostfacts.all_hosts(view)
    for name in words:
        if name not in known:
            raise Refused(f"main: invalid hostname {name}")
    names = [name for name in (words or known) if _is_eligible(request, name)]
    if resreq:
        names = hostfacts.fitting(request, names, resreq)
    names.sort(key=lambda name: _load_order(request, name))
    cpus = {name: max(1, hostfacts.host_of(view, name).facts.ncpus) for name in names}
    if packed:
        return [name for name in sorted(names, key=lambda name: -cpus[name]) for _ in range(cpus[name])]
    turns = range(max(cpus.values(), default=0))
    return [name for turn in turns for name in names if turn < cpus[name]]


def _is_eligible(request: Request, name: str) -> bool:
    view = request.view
    host = hostfacts.host_of(view, name)
    ready = host.state is HostState.OK and not host.closed and hostfacts.conf_of(view, name).server
    return ready and not hostfacts.busy_indices(view, name)


def _load_order(request: Request, name: str) -> tuple[float, float, str]:
    load = request.view.soft.load.get(name, {})
    return round(load.get("r15s", 0.0), 1), round(load.get("pg", 0.0), 1), name
