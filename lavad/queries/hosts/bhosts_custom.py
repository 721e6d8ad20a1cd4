"""bhosts -o and -json."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.cluster.usage_index import EXCLUSIVE_GPU
from lavad.queries.facts import hostfacts, jobfacts
from lavad.queries.facts.hostfacts import Slots
from lavad.queries.frame import columns
from lavad.queries.frame.columns import Custom, Named
from lavad.queries.frame.request import Request, Shown, out

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
        self.gpus = use.gpus if use is not None else {}


class HostField(Named, frozen=True):
    """A field."""

    value: Callable[[HostRow], object]


def _limit(value: int | None) -> object:
    return "" if value is None or value < 0 else value


def _memory(row: HostRow) -> object:
    value = row.view.soft.load.get(row.name, {}).get("mem")
    return "" if value is None else f"{value:.0f}M"


def _gpus(row: HostRow, kind: str) -> int:
    """GPUs that jobs hold: ``excl``, ``shared``, and ``jexcl``, those of the shared that a job has to itself."""
    use = row.view.cluster.use.hosts.get(row.name)
    held: set[str] = set()
    for key, part in use.jobs.items() if use is not None else ():
        job = row.view.cluster.jobs.rows.get(key)
        asked = row.view.spec(job).gpu if job is not None else None
        exclusive = asked is not None and asked.mode == "exclusive_process"
        alone = asked is not None and bool(asked.j_exclusive) and not exclusive
        if exclusive is (kind == "excl") and (alone or kind != "jexcl"):
            held.update(part.gpus)
    return len(held)


def _free(row: HostRow) -> int:
    return len(row.host.facts.gpus) - len(row.gpus)


def _shareable(row: HostRow) -> int:
    """GPUs on which there is room for another job that shares."""
    return len(row.host.facts.gpus) - sum(weight >= EXCLUSIVE_GPU for weight in row.gpus.values())


_TABLE: tuple[tuple[str, int, Callable[[HostRow], object]], ...] = (
    ("host_name hname", 20, lambda row: row.name),
    ("status stat", 15, lambda row: hostfacts.status(row.view, row.name, row.request.now, row.slots)),
    ("cpuf", 10, lambda row: f"{jobfacts.cpu_factor(row.view, row.name):.2f}"),
    ("jl_u jlu", 8, lambda row: _limit(row.conf.user_job_limit)),
    ("max", 8, lambda row: _limit(row.slots.max)),
    ("njobs", 8, lambda row: row.slots.all),
    ("run", 8, lambda row: row.slots.run),
    ("ssusp", 8, lambda row: row.slots.ssusp),
    ("ususp", 8, lambda row: row.slots.ususp),
    ("rsv", 8, lambda row: row.slots.rsv),
    ("dispatch_window dispwin", 30, lambda row: row.conf.dispatch_window),
    ("slots", 8, lambda row: _limit(row.slots.max)),
    ("slots_alloc", 8, lambda row: row.slots.all),
    ("comments", 30, lambda row: row.host.comment),
    ("available_mem", 15, _memory),
    ("reserved_mem", 15, lambda row: f"{row.held.get('mem', 0.0):.0f}M"),
    ("total_mem", 15, lambda row: f"{row.host.facts.max_mem}M" if row.host.facts.max_mem else ""),
    ("ngpus ng", 5, lambda row: len(row.host.facts.gpus)),
    ("ngpus_alloc ngu", 5, lambda row: len(row.gpus)),
    ("ngpus_excl_alloc ngx", 5, lambda row: _gpus(row, "excl")),
    ("ngpus_shared_alloc ngs", 5, lambda row: _gpus(row, "shared")),
    ("ngpus_shared_jexcl_alloc ngsjx", 5, lambda row: _gpus(row, "jexcl")),
    ("ngpus_excl_avail ngfx", 5, _free),
    ("ngpus_shared_avail ngfs", 5, _shareable),
    ("attribute attr", 50, lambda row: " ".join(hostfacts.booleans(row.view, row.name))),
    ("mig_alloc", 5, lambda row: ""),
)

FIELDS: dict[str, HostField] = {
    alias: HostField(names.split()[0], width, value) for names, width, value in _TABLE for alias in names.split()
}


def show(request: Request, names: list[str], custom: Custom, as_json: bool, header: bool) -> Iterator[Shown]:
    """A table or JSON."""
    rows = [[str(FIELDS[c.name].value(HostRow(request, name))) for c in custom.columns] for name in names]
    pieces = (
        columns.json_pieces("bhosts", "HOSTS", [columns.record(custom, row) for row in rows])
        if as_json
        else columns.table(custom, rows, header)
    )
    yield from map(out, pieces)
