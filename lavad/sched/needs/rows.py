"""The hosts as a cycle sees them: one row for each host, kept between cycles and renewed only where something changed.

Rule: a row is a copy: what a cycle places goes to the ledger and then to the row, and the row is renewed in the next cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import HostUse
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.eval import Value
from lavad.core.plan.volatile import Soft
from lavad.core.rules.gpu_packing import Cost, cost_of
from lavad.core.rules.gpus import matches, room
from lavad.core.rules.host_values import static_values
from lavad.core.rules.ledger import Ledger
from lavad.core.site.host import Host

_USED_KB = {"mem": "rss", "swp": "swap"}


class Row:
    """One host. ``free``: slots for a new job; ``start``: the same when the cycle began; ``index``: its number in all columns."""

    __slots__ = (
        "busy",
        "calm",
        "exclusive",
        "free",
        "gpu_costs",
        "gpu_fits",
        "gpu_room",
        "held",
        "host",
        "index",
        "load",
        "name",
        "rooms",
        "spare",
        "start",
        "touched",
        "use",
        "values",
    )

    def __init__(self, index: int, name: str) -> None:
        self.index = index
        self.name = name
        self.host = Host(name=name)
        self.load: Mapping[str, float] | None = None
        self.calm: Mapping[str, float] | None = None
        """The load that was found to be within all thresholds that suspend jobs."""
        self.use: HostUse | None = None
        self.touched = -2
        """``HostUse.touched`` of what the row was renewed from, -1: there was none; -2: it is to be renewed."""
        self.exclusive = False
        """Whether a job has the host for itself."""
        self.free = self.start = 0
        self.busy = False
        self.spare = -(1 << 60)
        self.held = 0.0
        self.rooms: dict[str, float] = {}
        self.gpu_room: dict[GpuReq, int] = {}
        self.gpu_costs: dict[tuple[GpuReq, int], Cost] = {}
        self.gpu_fits: dict[GpuReq, int] = {}
        self.values: dict[str, Value] | None = None

    def renew(self, ledger: Ledger, host: Host, use: HostUse | None, load: Mapping[str, float] | None) -> bool:
        """Copy the host's state; whether it has more free slots, or less reserved, than the row knew."""
        before, held = self.spare, self.held
        self.host, self.load = host, load
        self.use, self.touched = use, -1 if use is None else use.touched
        self._count(ledger)
        self.start = self.free
        self.values = None
        self.gpu_fits = {}
        return self.spare > before or self.held < held

    def refresh(self, ledger: Ledger) -> None:
        """Bring the row up to the ledger after something was placed here."""
        self._count(ledger)
        self.touched = -2

    def _count(self, ledger: Ledger) -> None:
        mine = ledger.host(self.name)
        self.spare = mine.slots - mine.taken
        self.held = sum(mine.reserved.values()) if mine.reserved else 0.0
        self.exclusive = bool(mine.exclusive)
        self.busy = bool(mine.jobs)
        self.free = 0 if self.exclusive else max(0, self.spare)
        self.rooms = {}
        self.gpu_room = {}
        self.gpu_costs = {}

    def room(self, ledger: Ledger, soft: Soft, name: str) -> float:
        """How much of a resource a new job may reserve here: the less of what is not reserved and what is measured as free."""
        if ledger.is_shared(name):
            return ledger.room(self.name, name) or 0.0
        left = self.rooms.get(name)
        if left is None:
            left = self.rooms[name] = self._measure(ledger, soft, name)
        return left

    def _measure(self, ledger: Ledger, soft: Soft, name: str) -> float:
        left = ledger.room(self.name, name)
        measured = self.load.get(name) if self.load is not None else None
        if measured is None:
            return 0.0 if left is None else left
        use = ledger.cluster.use.hosts.get(self.name)
        reserved = use.reserved.get(name, 0.0) if use is not None else 0.0
        fresh = ledger.host(self.name).reserved.get(name, 0.0) - reserved
        measured -= fresh + (unrealized(use, soft, self.name, name) if reserved else 0.0)
        return measured if left is None else min(left, measured)

    def gpus_left(self, ledger: Ledger, req: GpuReq) -> int:
        """How many GPUs a job with this requirement may get here now."""
        left = self.gpu_room.get(req)
        if left is None:
            mine = ledger.host(self.name)
            left = self.gpu_room[req] = room(mine.gpus, mine.gpu_book, req) if mine.gpus else 0
        return left

    def gpus_fitting(self, req: GpuReq) -> int:
        """How many GPUs of this host are what a requirement asks for, free or not."""
        count = self.gpu_fits.get(req)
        if count is None:
            count = self.gpu_fits[req] = sum(matches(gpu, req) for gpu in self.host.facts.gpus)
        return count

    def gpu_cost(self, ledger: Ledger, req: GpuReq, slots: int) -> Cost:
        """What a part of ``slots`` tasks would break of this host's GPUs; there must be room for it."""
        cost = self.gpu_costs.get((req, slots))
        if cost is None:
            mine = ledger.host(self.name)
            cost = self.gpu_costs[req, slots] = cost_of(mine.gpus, mine.gpu_book, req, slots)
        return cost


def unrealized(use: HostUse | None, soft: Soft, host: str, name: str) -> float:
    """What started jobs have reserved on a host and do not use yet, so that measurements do not show it; memory in MB."""
    field = _USED_KB.get(name)
    waiting = []
    for key, part in use.jobs.items() if use is not None else ():
        amount = next((amount for own, amount in part.reserved if own == name), 0.0)
        usage = soft.usage.get(key, {}).get(host) if field is not None and amount else None
        used = getattr(usage, field) / 1024 if usage is not None and field is not None else 0.0
        waiting.append(max(0.0, amount - used))
    return fsum(waiting)  # fsum: the same sum in whatever order they started


def read_load(row: Row, cluster: Cluster, soft: Soft, name: str) -> float | None:
    """A load index of a host less what is reserved of it and not used yet, as of the beginning of the cycle."""
    value = row.load.get(name) if row.load is not None else None
    use = cluster.use.hosts.get(row.name)
    if value is None or use is None or name not in use.reserved:
        return value
    return value - unrealized(use, soft, row.name, name)


def read_values(row: Row, cluster: Cluster, soft: Soft) -> dict[str, Value]:
    """All values of a host that a select expression may name, as of the beginning of the cycle."""
    if row.values is not None:
        return row.values
    values = static_values(cluster, row.name)
    values["slots"] = row.start
    if row.host.closed:
        values["status"] = "closed"
    for name in row.load or ():
        value = read_load(row, cluster, soft, name)
        if value is not None:
            values[name] = value
    row.values = values
    return values
