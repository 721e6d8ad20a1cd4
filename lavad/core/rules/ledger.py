"""The ledger of one decision: what every host still has, counted from the cluster's use and from what was taken since.

Rule: the scheduler and ``accept_plan`` place by this ledger alone; it never changes the cluster. Only what jobs hold that
were there before is ever given back (``give``): those that are preempted, or that a promise expects to be over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.cluster.usage_index import RSV, RUN, SSUSP, USUSP, shift
from lavad.core.job.groups import lineage
from lavad.core.job.job import Part, Placed
from lavad.core.job.roles import gpus_wanted
from lavad.core.job.spec import Spec
from lavad.core.lang.cpus import taken_by
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.states import HostState
from lavad.core.lang.topology import parse_topology
from lavad.core.rules.gpus import is_joined, is_open, matches, wanted
from lavad.core.rules.host_values import own_resource, topology_of
from lavad.core.site.host import Gpu
from lavad.core.site.pend_reason import JOB_RUSAGE, PendReason, about, index_names

UNLIMITED = 1_000_000_000
_FACTS = {"mem": "max_mem", "swp": "max_swap", "tmp": "max_tmp"}


class HostLedger:
    """One host: what it has, and what of it is in use or reserved."""

    __slots__ = ("cpus", "exclusive", "gpu_book", "gpus", "held", "jobs", "ncpus", "reserved", "slots", "taken", "topology")

    def __init__(self, cluster: Cluster, name: str) -> None:
        host = cluster.hosts.rows[name]
        use = cluster.use.hosts.get(name)
        most = cluster.slots_of(name)
        self.slots = UNLIMITED if most < 0 else most
        self.ncpus = host.facts.ncpus
        self.gpus: Sequence[Gpu] = host.facts.gpus
        self.taken = use.slots if use else 0
        self.exclusive = use.exclusive if use else 0
        self.jobs = len(use.jobs) if use else 0
        self.reserved: dict[str, float] = use.reserved.copy() if use else {}
        closed = host.closed_devices()
        self.gpu_book = use.gpus.copy(closed) if use else GpuBook(closed=closed)
        self.cpus: dict[int, int] = use.cpus.copy() if use else {}
        self.topology = topology_of(cluster, name)
        self.held: list[tuple[str, float]] = []
        """Amounts of resources that are held for waiting jobs."""
        for key, part in use.held.items() if use else ():
            self.held += self.hold(part, cluster.spec_of(key), given_up_for(cluster, name, key)).reserved

    @property
    def free(self) -> int:
        """Slots that are not in use."""
        return max(0, self.slots - self.taken)

    def take(self, part: Placed | Part, spec: Spec, sign: int = 1) -> None:
        """One more part of a job of ``spec``, or (``sign`` -1) one less."""
        self.taken += sign * part.slots
        self.exclusive += sign * spec.exclusive
        self.jobs += sign
        for name, amount in part.reserved:
            self.reserved[name] = self.reserved.get(name, 0.0) + sign * amount
        self.gpu_book.count(part.gpus, spec, sign)
        for cpu in taken_by(part.binds) if part.binds else ():
            shift(self.cpus, cpu, sign)

    def hold(self, part: Placed, spec: Spec, given_up: Sequence[Part | Placed]) -> Placed:
        """Hold a part for a waiting job, less what the jobs preempted for it still have (``given_up``); what is held now."""
        slots = max(0, part.slots - sum(other.slots for other in given_up))
        rest = []
        for name, amount in part.reserved:
            amount -= sum(value for other in given_up for own, value in other.reserved if own == name)
            if amount > 0:
                rest.append((name, amount))
        held = Placed(host=part.host, slots=slots, gpus=part.gpus, reserved=tuple(rest), binds=part.binds)
        self.take(held, spec)
        return held


def given_up_for(cluster: Cluster, host: str, key: int) -> list[Part]:
    """Parts on a host that are to go for the job ``key``."""
    rows = cluster.jobs.rows
    parts = cluster.use.hosts[host].jobs.items()
    return [
        part
        for other, part in parts
        if (rows[other].preempted_for_good and rows[other].preempted_for == key) or part.preempted_for == key
    ]


class Ledger:
    """All hosts, and the sums that limits are about."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.hosts: dict[str, HostLedger] = {}
        self.names = index_names(cluster.conf)
        self.queues: defaultdict[str, int] = defaultdict(int)
        self.gpus: defaultdict[str, int] = defaultdict(int)
        """Queue to the GPUs that its jobs took."""
        self.users: defaultdict[str, int] = defaultdict(int)
        self.pairs: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.arrays: defaultdict[int, int] = defaultdict(int)
        self.groups: defaultdict[str, int] = defaultdict(int)
        self.placed: list[tuple[Spec, tuple[Placed, ...]]] = []
        self.grown: dict[int, frozenset[str]] = {}
        """Place in ``placed`` of slots that a running job got to the hosts that it had before."""
        self.counted: list[tuple[Spec, tuple[Placed, ...]]] = []
        """Of jobs that are only counted: their slots are held in another way."""
        self.begun: list[Spec] = []
        """Of the jobs that were started or counted, or began to get slots, one by one."""
        self._consumable = {resource.name: resource for resource in cluster.conf.resources if resource.locations}
        self._shared: dict[tuple[str, int], float] | None = None
        self._shifted: list[tuple[str, tuple[tuple[str, float], ...], int]] = []

    def host(self, name: str) -> HostLedger:
        """The ledger of a known host."""
        found = self.hosts.get(name)
        if found is None:
            found = self.hosts[name] = HostLedger(self.cluster, name)
        return found

    def queue_slots(self, queue: str) -> int:
        """Started slots of a queue."""
        return _started(self.cluster.use.queues.get(queue)) + self.queues[queue]

    def queue_gpus(self, queue: str) -> int:
        """GPUs that a queue's jobs have; a GPU counts for each job on it."""
        return self.cluster.use.queue_gpus.get(queue, 0) + self.gpus[queue]

    def user_slots(self, user: str) -> int:
        """Started slots of a user."""
        return _started(self.cluster.use.users.get(user)) + self.users[user]

    def all_users(self) -> set[str]:
        """Who has jobs, or gets slots now."""
        return {*self.cluster.use.users, *self.users}

    def pair_slots(self, queue: str, user: str) -> int:
        """Started slots of a user in a queue."""
        return _started(self.cluster.use.pairs.get((queue, user))) + self.pairs[queue, user]

    def array_running(self, job: int) -> int:
        """Elements of an array that are started, or for which something is held."""
        return self.cluster.use.array_running.get(job, 0) + self.arrays[job] + self._held[0].get(job, 0)

    def why_not_array(self, key: int) -> int:
        """Pend reason if the element's array has reached its limit ``%n`` of running elements; 0: it has not."""
        array = self.cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
        if array is None or not array.limit or self.array_running(array.job) < array.limit:
            return 0
        return PendReason.JOB_ARRAY_LIMIT

    @cached_property
    def _held(self) -> tuple[Counter[int], Counter[str]]:
        """(array to its elements, job group to the jobs in it and below it) that wait for what is held for them."""
        cluster = self.cluster
        groups = (group for key in cluster.promised for group in lineage(cluster.spec_of(key).group))
        return Counter(job_of(key) for key in cluster.promised if index_of(key)), Counter(groups)

    def group_left(self, path: str) -> int:
        """How many more jobs may start by the limits of a job group and of the groups above it."""
        left = UNLIMITED
        rows, running = self.cluster.groups.rows, self.cluster.use.group_running
        for group in lineage(path) if rows else ():
            row = rows.get(group)
            if row is not None and row.limit is not None:
                left = min(left, row.limit - running.get(group, 0) - self.groups[group] - self._held[1].get(group, 0))
        return left

    def take(self, key: int, spec: Spec, parts: tuple[Placed, ...], alone: tuple[str, ...] = ()) -> None:
        """A job starts on these hosts; no other job may use those in ``alone`` meanwhile."""
        for name in alone:
            self.host(name).exclusive += 1
        for part in parts:
            self.host(part.host).take(part, spec)
            if self._shared is not None:
                self._add_shared(part.host, part.reserved)
        self.count_slots(spec, parts)
        self.count_job(key, spec)
        self.placed.append((spec, parts))

    def take_alike(self, key: int, spec: Spec, parts: tuple[Placed, ...], count: int) -> None:
        """As ``take``, for so many jobs of one class with this one part of slots and nothing else.

        They are elements of the array of ``key``, or separate.
        """
        (part,) = parts
        host = self.host(part.host)
        host.taken += count * part.slots
        host.jobs += count
        for sums, name in ((self.queues, spec.queue), (self.users, spec.user)):
            sums[name] += count * part.slots
        self.pairs[spec.queue, spec.user] += count * part.slots
        if key >> 32:
            self.arrays[key & 0xFFFFFFFF] += count
        for group in lineage(spec.group):
            self.groups[group] += count
        self.placed += [(spec, parts)] * count
        self.begun += [spec] * count

    def count(self, key: int, spec: Spec, parts: tuple[Placed, ...]) -> None:
        """Count a job for the limits only: its slots are held in another way."""
        self.counted.append((spec, parts))
        self.count_slots(spec, parts)
        self.count_job(key, spec)

    def count_job(self, key: int, spec: Spec) -> None:
        """One job more, also of its array and its job group."""
        self.begun.append(spec)
        if key >> 32:
            self.arrays[key & 0xFFFFFFFF] += 1
        for group in lineage(spec.group):
            self.groups[group] += 1

    def grow(self, spec: Spec, parts: tuple[Placed, ...], own: Iterable[str]) -> None:
        """A running job, which has the hosts ``own``, gets more slots: they count for queues and users, but it is no job more."""
        for part in parts:
            self.host(part.host).take(part, spec)
            if self._shared is not None:
                self._add_shared(part.host, part.reserved)
        self.grown[len(self.placed)] = frozenset(own)
        self.placed.append((spec, parts))
        self.count_slots(spec, parts)

    def count_slots(self, spec: Spec, parts: tuple[Placed, ...]) -> None:
        """So many slots and GPUs more of the queue and the user."""
        slots = sum(part.slots for part in parts)
        self.queues[spec.queue] += slots
        self.gpus[spec.queue] += sum(len(part.gpus) for part in parts)
        self.users[spec.user] += slots
        self.pairs[spec.queue, spec.user] += slots

    def shift(self, parts: Iterable[Placed | Part], spec: Spec, sign: int) -> None:
        """Hold these parts on their hosts (1) or release them (-1); sums of queues and users do not change."""
        for part in parts:
            self.host(part.host).take(part, spec, sign)
            self._shift_shared(part, sign)

    def hold(self, part: Placed, spec: Spec, given_up: Sequence[Part | Placed]) -> None:
        """As ``HostLedger.hold``."""
        self._shift_shared(self.host(part.host).hold(part, spec, given_up), 1)

    def _shift_shared(self, part: Placed | Part, sign: int) -> None:
        if part.reserved and self._shared is not None:
            self._add_shared(part.host, [(name, sign * amount) for name, amount in part.reserved])
        elif part.reserved and self._consumable:
            self._shifted.append((part.host, part.reserved, sign))

    def shift_some(self, parts: Iterable[Placed], spec: Spec, sign: int) -> None:
        """As ``shift``, of a part of what a job has on a host that it keeps."""
        for part in parts:
            host = self.host(part.host)
            host.take(part, spec, sign)
            host.jobs -= sign
            host.exclusive -= sign * spec.exclusive
            self._shift_shared(part, sign)

    def shift_slots(self, parts: Iterable[Placed | Part], sign: int) -> None:
        """As ``shift``, of their slots only."""
        for part in parts:
            self.host(part.host).taken += sign * part.slots

    def capacity(self, host: str, name: str) -> float | None:
        """The amount of a resource that a host has when empty (MB for memory); None: known from its load only."""
        fact = _FACTS.get(name)
        if fact is not None:
            return float(getattr(self.cluster.hosts.rows[host].facts, fact)) or None
        value = own_resource(self.cluster, host, name)
        return None if value is None else _number(value)

    def instance(self, host: str, name: str) -> int:
        """The number of the shared instance of a resource that a host uses; -1: none."""
        resource = self._consumable.get(name)
        for at, (_, hosts) in enumerate(resource.locations if resource is not None else ()):
            if host in hosts or "all" in hosts:
                return at
        return -1

    def is_shared(self, name: str) -> bool:
        """Whether hosts share this resource."""
        return name in self._consumable

    def room(self, host: str, name: str) -> float | None:
        """How much of a resource may still be reserved on a host; None: the ledger does not know."""
        if name in self._consumable:
            return self.shared_room(name, self.instance(host, name))
        most = self.capacity(host, name)
        return None if most is None else most - self.host(host).reserved.get(name, 0.0)

    def shared_room(self, name: str, instance: int) -> float:
        """How much is left of a shared instance."""
        if instance < 0:
            return 0.0
        if self._shared is None:
            self._count_shared()
        taken = (self._shared or {}).get((name, instance), 0.0)
        return self._consumable[name].locations[instance][0] - taken

    def _count_shared(self) -> None:
        self._shared = {}
        for host, use in self.cluster.use.hosts.items():
            self._add_shared(host, use.reserved.items())
        for _, parts in self.placed:
            for part in parts:
                self._add_shared(part.host, part.reserved)
        rows = self.cluster.jobs.rows
        for host in {held.host for key in self.cluster.promised for held in rows[key].promised}:
            self._add_shared(host, self.host(host).held)
        for host, reserved, sign in self._shifted:
            self._add_shared(host, [(name, sign * amount) for name, amount in reserved])

    def _add_shared(self, host: str, reserved: Iterable[tuple[str, float]]) -> None:
        shared = self._shared if self._shared is not None else {}
        for name, amount in reserved:
            if name in self._consumable:
                at = (name, self.instance(host, name))
                shared[at] = shared.get(at, 0.0) + amount

    def why_not_host(self, name: str) -> int:
        """Why no job may start on a host at all; 0: it may."""
        host = self.cluster.hosts.rows.get(name)
        if host is None or host.state is not HostState.OK:
            return PendReason.SBD_UNREACH
        if host.closed:
            return PendReason.HOST_DISABLED
        conf = self.cluster.host_conf.get(name)
        return PendReason.HOST_QUE_MEMB if conf is not None and not conf.server else 0

    def why_not_alone(self, hosts: Iterable[str]) -> int:
        """Why a job may not have these hosts for itself; 0: it may."""
        rows = map(self.host, hosts)
        return PendReason.HOST_NONEXCLUSIVE if any(row.jobs or row.exclusive for row in rows) else 0

    def why_not_part(self, spec: Spec, part: Placed) -> int:
        """Why a host has no room for a part of a job; 0: it has."""
        reason = self.why_not_host(part.host)
        if reason:
            return reason
        host = self.host(part.host)
        if host.exclusive:
            return PendReason.HOST_EXCLUSIVE
        if spec.exclusive and host.jobs:
            return PendReason.HOST_NONEXCLUSIVE
        if part.slots > host.free:
            return PendReason.HOST_LESS_SLOTS if host.free else PendReason.HOST_JOB_LIMIT
        for name, amount in part.reserved:
            room = self.room(part.host, name)
            if room is not None and amount > room + 1e-6:
                return about(JOB_RUSAGE, name, self.names)
        return _why_not_cpus(part, host) or self._why_not_gpus(spec, part, host)

    def _why_not_gpus(self, spec: Spec, part: Placed, host: HostLedger) -> int:
        gpu = spec.gpu
        if gpu is None:
            return 0
        sizes = gpus_wanted(spec, part)
        count = sum(sizes) if spec.roles else wanted(gpu, part.slots)
        mine = [card for card in host.gpus if card.uuid in part.gpus and matches(card, gpu)]
        free = {card.uuid for card in mine if is_open(card, host.gpu_book, gpu)}
        held = len(free) == count and is_joined(host.gpus, part.gpus, gpu, sizes)
        return 0 if held else PendReason.GPU_BUSY


def _why_not_cpus(part: Placed, host: HostLedger) -> int:
    """affinity[]: whether the part's CPUs exist and are no other job's."""
    if not part.binds:
        return 0
    topology = parse_topology(host.topology)
    wanted = taken_by(part.binds)
    known = topology is not None and wanted <= topology.cpus
    return 0 if known and wanted.isdisjoint(host.cpus) and len(part.binds) == part.slots else PendReason.HOST_NO_CPUS


def _started(column: list[int] | None) -> int:
    return 0 if column is None else column[RUN] + column[SSUSP] + column[USUSP] + column[RSV]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
