"""lshosts: what each host is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from config.model.values import LOAD_INDICES
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq.text import BUILT_IN
from lavad.core.lang.states import HostState
from lavad.queries.facts import hostfacts, jobfacts, resources
from lavad.queries.facts.hostfacts import SharedInstance
from lavad.queries.facts.load import site_indices
from lavad.queries.frame import columns, formats
from lavad.queries.frame.request import Options, Request, Shown, out
from lavad.queries.hosts import hostgpus

HEADER = "HOST_NAME      type    model  cpuf ncpus maxmem maxswp server RESOURCES\n"
WIDE = "HOST_NAME                       type       model  cpuf ncpus maxmem maxswp server RESOURCES\n"
DEFAULT = "host_name type model cpuf ncpus maxmem maxswp server resources"
_LONG = "type             model  cpuf ncpus ndisks maxmem maxswp maxtmp rexpri server\n"
_THRESHOLDS = "  r15s   r1m  r15m   ut    pg    io   ls   it   tmp   swp   mem"
_WIDTHS = (6, 6, 6, 5, 6, 6, 5, 5, 6, 6, 6)


def show(request: Request) -> Iterator[Shown]:
    """A line, or a record with -l, for each host."""
    options = request.options()
    columns.refuse_json_with(options, "s", "sl", "T", "gpu")
    if options.any("s", "sl"):
        yield from _shared(request)
        return
    names = _names(request, options)
    if options.any("T", "gpu"):
        if "T" in options:
            yield out("\n".join(resources.host_topology(request.view, name) for name in names))
        else:
            yield from hostgpus.show_facts(request, names, "noheader" not in options, "mig" in options)
        return
    given = columns.find_format(request, options, DEFAULT, "l", "w")
    if given is not None:
        yield from columns.show_rows(options, "HOSTS", columns.row_fields(table(request)), given, list(names))
        return
    if "l" in options:
        shared = hostfacts.shared_by_host(request.view)
        for name in names:
            yield out(_record(request, name, shared.get(name, ())))
        return
    if "noheader" not in options:
        yield out(WIDE if "w" in options else HEADER)
    for name in names:
        yield out(_row(request, name, "w" in options))


def _names(request: Request, options: Options) -> list[str]:
    known = hostfacts.all_hosts(request.view)
    words = hostfacts.without_groups(request.view, request.words)
    for name in words:
        if name not in known:
            raise Refused(f"lshosts: Bad host name: {name}" if "l" in options else f"main: invalid hostname {name}")
    names = words if request.words else known
    if "R" in options:
        names = hostfacts.fitting(request, list(names), options.text("R"))
        if not names:
            raise Refused("lshosts: No host satisfies the resource requirement")
    return names


def _row(request: Request, name: str, wide: bool) -> str:
    view = request.view
    facts = hostfacts.host_of(view, name).facts
    kind, model = hostfacts.type_of(view, name), hostfacts.model_of(view, name)
    lead = f"{name:<26} {kind:>9} {model:>11}" if wide else f"{name:<11.11} {kind:>7.7} {model:>8.8}"
    known = hostfacts.host_of(view, name).joined or facts.max_mem
    cpus = str(facts.ncpus) if known else "-"
    server = "Yes" if hostfacts.conf_of(view, name).server else "No"
    return (
        f"{lead} {jobfacts.cpu_factor(view, name):>5.1f} {cpus:>5} {formats.max_text(facts.max_mem):>6} "
        f"{formats.max_text(facts.max_swap):>6} {server:>6} ({' '.join(hostfacts.booleans(view, name))})\n"
    )


def table(request: Request) -> Iterator[tuple[str, int, Callable[[str, str], object]]]:
    """The fields of -o."""
    view = request.view

    def fact(name: str) -> Callable[[str, str], object]:
        return lambda host, unit: getattr(hostfacts.host_of(view, host).facts, name)

    def size(name: str) -> Callable[[str, str], object]:
        def read(host: str, unit: str) -> object:
            value = getattr(hostfacts.host_of(view, host).facts, name)
            if value and unit:
                return formats.unit_text(value * 1024, unit)
            return "" if not value else formats.max_text(value)

        return read

    yield "HOST_NAME hname", 20, lambda host, unit: host
    yield "type", 10, lambda host, unit: hostfacts.type_of(view, host)
    yield "model", 10, lambda host, unit: hostfacts.model_of(view, host)
    yield "cpuf", 6, lambda host, unit: f"{jobfacts.cpu_factor(view, host):.2f}"
    yield "ncpus", 6, fact("ncpus")
    yield "nprocs", 6, fact("nprocs")
    yield "ncores", 6, fact("ncores")
    yield "nthreads", 8, fact("nthreads")
    yield "maxmem", 8, size("max_mem")
    yield "maxswp", 8, size("max_swap")
    yield "maxtmp", 8, size("max_tmp")
    yield "server", 6, lambda host, unit: "Yes" if hostfacts.conf_of(view, host).server else "No"
    yield "RESOURCES", 30, lambda host, unit: f"({' '.join(hostfacts.booleans(view, host))})"
    yield "ndisks", 6, lambda host, unit: 0
    yield "rexpri", 6, lambda host, unit: 0
    yield "RUN_WINDOWS", 20, lambda host, unit: hostfacts.conf_of(view, host).run_window or "(always open)"
    yield "ngpus", 6, lambda host, unit: int(hostfacts.gpu_counts(view, host)["ngpus"])
    yield (
        "gpu_model",
        20,
        lambda host, unit: " ".join(
            dict.fromkeys(gpu.model.replace(" ", "") for gpu in hostfacts.host_of(view, host).facts.gpus)
        ),
    )


def _record(request: Request, name: str, shared: Sequence[SharedInstance]) -> str:
    view = request.view
    host, conf = hostfacts.host_of(view, name), hostfacts.conf_of(view, name)
    facts = host.facts
    row = (
        f"{hostfacts.type_of(view, name):<10} {hostfacts.model_of(view, name):>11} "
        f"{jobfacts.cpu_factor(view, name):>5.1f} {facts.ncpus:>5} {0:>6} {facts.max_mem:>5}M {facts.max_swap:>5}M "
        f"{facts.max_tmp:>5}M {0:>6} {'Yes' if conf.server else 'No':>6}\n"
    )
    static = "".join(f"  {one.resource}\n    {one.amount:g}\n" for one in shared)
    values = dict(conf.thresholds.sched)
    extra = site_indices(view.cluster.conf)
    names = [*zip(LOAD_INDICES, _WIDTHS, strict=True), *((index, len(index) + 1) for index in extra)]
    cells = "".join(f"{'-' if index not in values else f'{values[index]:g}':>{width}}" for index, width in names)
    state = "" if host.state is HostState.OK else "\nSTATUS: unavail\n"
    return (
        f"\nHOST_NAME:  {name}\n{_LONG}{row}{static}\nRESOURCES: ({' '.join(hostfacts.booleans(view, name))})\n"
        f"RUN_WINDOWS:  {conf.run_window or '(always open)'}\n{_gpus(request, name)}{state}\nLOAD_THRESHOLDS:\n"
        f"{_THRESHOLDS}{''.join(f' {index}' for index in extra)}\n{cells}\n"
    )


def _gpus(request: Request, name: str) -> str:
    gpus = hostfacts.host_of(request.view, name).facts.gpus
    return "".join(f"GPU {gpu.index}: {gpu.model} {formats.mb_text(gpu.memory)} {gpu.uuid}\n" for gpu in gpus)


def _shared(request: Request) -> Iterator[Shown]:
    """-s: the resources that the words name, else all."""
    view = request.view
    known = {*BUILT_IN, *(resource.name for resource in view.cluster.conf.resources)}
    for word in request.words:
        if word not in known:
            raise Refused(f"{word}: resource name not found")
    yield out("RESOURCE                                VALUE       LOCATION\n")
    for one in hostfacts.shared_instances(view):
        if not request.words or one.resource in request.words:
            yield out(f"{one.resource:<30} {one.amount:>14g}       {' '.join(one.hosts)} \n")
