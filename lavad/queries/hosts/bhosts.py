"""bhosts: hosts with their status and job slots; -s: the resources that hosts share. With -l: ``bhosts_long``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.facts import gpufacts, hostfacts, jobfacts
from lavad.queries.facts.hostfacts import Slots
from lavad.queries.frame import columns, formats
from lavad.queries.frame.request import Request, Shown, err, out
from lavad.queries.hosts import bhosts_long, hostgpus

HEADER = "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n"
WIDE = "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n"


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    columns.refuse_json_with(options, "l", "s", "sl", "e", "gpu")
    if options.any("s", "sl"):
        yield from _show_shared(request, "noheader" not in options)
        return
    names = hostfacts.named(request, request.words)
    if "R" in options:
        names = hostfacts.fitting(request, names, options.text("R"))
    if not request.words:
        names = [name for name in names if hostfacts.conf_of(request.view, name).server]
    if "x" in options:
        names = [name for name in names if hostfacts.host_of(request.view, name).is_faulty]
        if not names:
            yield out("There is no exceptional host found\n")
            return
    if not names:
        raise Refused("No suitable host found" if "R" in options else "No host found")
    if "e" in options:
        yield out("No host is exported to another cluster\n")
    elif options.any("gpu") and "l" in options:
        yield out("\n".join(hostgpus.show_long(request, name) for name in names))
    elif "gpu" in options:
        yield from hostgpus.show_use(request, names, "noheader" not in options, "w" in options)
    elif "l" in options:
        yield from bhosts_long.show(request, names, "aff" in options)
    elif given := columns.find_format(request, options, DEFAULT, "w"):
        rows = [HostRow(request, name) for name in names]
        yield from columns.show_rows(options, "HOSTS", FIELDS, given, rows)
    else:
        yield from _rows(request, names, "w" in options, "noheader" not in options)


def _rows(request: Request, names: list[str], wide: bool, header: bool) -> Iterator[Shown]:
    view = request.view
    if header:
        yield out(WIDE if wide else HEADER)
    for name in names:
        slots = Slots(view, name)
        state = hostfacts.status(view, name, request.now, slots)
        per_user = hostfacts.limit(hostfacts.conf_of(view, name).user_job_limit)
        lead = f"{name:<18} {state:<15}" if wide else f"{name:<18.18} {state.partition('_')[0]:<12.12}"
        yield out(
            f"{lead} {per_user:>4} {hostfacts.limit(slots.max):>6} {slots.all:>6} {slots.run:>6} {slots.ssusp:>6} "
            f"{slots.ususp:>6} {slots.rsv:>6}\n"
        )


def _show_shared(request: Request, header: bool) -> Iterator[Shown]:
    """-s: one line for each instance."""
    known = hostfacts.shared_instances(request.view)
    wanted = [one for one in known if not request.words or one.resource in request.words]
    if not wanted:
        yield err("No shared resources defined")
        return
    if header:
        yield out("RESOURCE                 TOTAL       RESERVED       LOCATION\n")
    for one in wanted:
        yield out(f"{one.resource:<20} {one.amount:>9g} {one.reserved:>14.1f}       {' '.join(one.hosts)} \n")


DEFAULT = "host_name status jl_u max njobs run ssusp ususp rsv"


class HostRow:
    """The host whose fields are read."""

    def __init__(self, request: Request, name: str) -> None:
        self.request = request
        self.view = request.view
        self.name = name
        self.slots = Slots(request.view, name)
        self.conf = hostfacts.conf_of(request.view, name)
        self.host = hostfacts.host_of(request.view, name)
        use = request.cluster.use.hosts.get(name)
        self.held = use.reserved if use is not None else {}
        self.gpus = gpufacts.of_host(request.view, name)


def _bound(value: int | None) -> object:
    return "" if value is None or value < 0 else value


def _memory(row: HostRow, unit: str) -> object:
    value = row.view.soft.load.get(row.name, {}).get("mem")
    return "" if value is None else _size(value, unit)


def _size(mb: float, unit: str) -> str:
    return formats.unit_text(mb * 1024, unit) if unit else f"{mb:.0f}M"


def _gpus(row: HostRow, kind: str) -> int:
    """GPUs that jobs have: ``excl``, ``shared``, and ``jexcl``, those of the shared that a job has to itself."""
    held = [one for one in row.gpus if one.allocated]
    if kind == "excl":
        return gpufacts.count(one for one in held if one.exclusive)
    return gpufacts.count(one for one in held if not one.exclusive and (one.alone or kind == "shared"))


_TABLE: tuple[tuple[str, int, Callable[[HostRow, str], object]], ...] = (
    ("host_name hname", 20, lambda row, _: row.name),
    ("status stat", 15, lambda row, _: hostfacts.status(row.view, row.name, row.request.now, row.slots)),
    ("cpuf", 10, lambda row, _: f"{jobfacts.cpu_factor(row.view, row.name):.2f}"),
    ("jl_u jlu", 8, lambda row, _: _bound(row.conf.user_job_limit)),
    ("max", 8, lambda row, _: _bound(row.slots.max)),
    ("njobs", 8, lambda row, _: row.slots.all),
    ("run", 8, lambda row, _: row.slots.run),
    ("ssusp", 8, lambda row, _: row.slots.ssusp),
    ("ususp", 8, lambda row, _: row.slots.ususp),
    ("rsv", 8, lambda row, _: row.slots.rsv),
    ("dispatch_window dispwin", 30, lambda row, _: row.conf.dispatch_window),
    ("slots", 8, lambda row, _: _bound(row.slots.max)),
    ("slots_alloc", 8, lambda row, _: row.slots.all),
    ("comments", 30, lambda row, _: row.host.comment),
    ("available_mem", 15, _memory),
    ("reserved_mem", 15, lambda row, unit: _size(row.held.get("mem", 0.0), unit)),
    ("total_mem", 15, lambda row, unit: _size(row.host.facts.max_mem, unit) if row.host.facts.max_mem else ""),
    ("ngpus ng", 5, lambda row, _: gpufacts.count(row.gpus)),
    ("ngpus_alloc ngu", 5, lambda row, _: gpufacts.count(one for one in row.gpus if one.allocated)),
    ("ngpus_excl_alloc ngx", 5, lambda row, _: _gpus(row, "excl")),
    ("ngpus_shared_alloc ngs", 5, lambda row, _: _gpus(row, "shared")),
    ("ngpus_shared_jexcl_alloc ngsjx", 5, lambda row, _: _gpus(row, "jexcl")),
    ("ngpus_excl_avail ngfx", 5, lambda row, _: sum(one.free for one in row.gpus)),
    ("ngpus_shared_avail ngfs", 5, lambda row, _: sum(one.shareable for one in row.gpus)),
    ("attribute attr", 50, lambda row, _: " ".join(hostfacts.booleans(row.view, row.name))),
    ("mig_alloc", 5, lambda row, _: sum(bool(one.gpu.parent) and one.allocated for one in row.gpus)),
)

FIELDS = columns.row_fields(_TABLE, capitals=True)
