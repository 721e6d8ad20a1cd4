"""Guaranteed resource pools: what of each is free, who uses it, and how much of it a job may have.

A pool is counted in units: slots, packages of slots and memory on one host, or whole hosts. What a service class does not use
of its guarantee is kept for it out of what is free: others have the rest, or a loan (LOAN_POLICIES).

Rule, as in LSF: a class within its guarantee may have whatever is free; nothing is taken away from jobs that run. A host that
is down or closed, or in an active advance reservation, is in no pool meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from config.model.guarantees import Pool
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Part, Placed
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.eval import compile_select
from lavad.core.lang.states import HostState
from lavad.core.rules.host_values import idle_values
from lavad.core.rules.ledger import UNLIMITED, Ledger
from lavad.core.site.reservation import is_active
from lavad.core.site.service_classes import ServiceClasses

Use = tuple[str, int, float]
"""What a part of a job has on a host: (service class or "", slots, memory in MB)."""


def members_of(cluster: Cluster, pool: Pool) -> tuple[str, ...]:
    """The hosts of a pool, by HOSTS and RES_SELECT; none where RES_SELECT cannot be read."""
    hosts = cluster.hosts.rows
    found = [name for name in cluster.conf.groups_of_hosts.preferences(pool.hosts, hosts) if _is_server(cluster, name)]
    if not pool.res_select:
        return tuple(found)
    try:
        test = compile_select(resreq.parse(f"select[{pool.res_select}]").select)
    except resreq.ResReqError:
        return ()
    return tuple(name for name in found if test(idle_values(cluster, name)))


def _is_server(cluster: Cluster, name: str) -> bool:
    conf = cluster.host_conf.get(name)
    return conf is None or conf.server


def ready_hosts(cluster: Cluster, names: Iterable[str], now: float) -> list[str]:
    """Those of the hosts of a pool that count now."""
    rows = cluster.hosts.rows
    reserved = {name for row in cluster.reservations.rows.values() if is_active(row, now) for name, _ in row.hosts}
    return [name for name in names if rows[name].state is HostState.OK and not rows[name].closed and name not in reserved]


def uses_on(cluster: Cluster, name: str, classes: ServiceClasses) -> Counter[Use]:
    """What started jobs, and those for which something is held, have on a host; a job preempted by suspension has no slots."""
    found: Counter[Use] = Counter()
    use = cluster.use.hosts.get(name)
    if use is None:
        return found
    for key, part in use.jobs.items():
        job = cluster.jobs.rows[key]
        gave_up = job.preempted_for and not job.preempted_for_good
        found[use_of(part, classes.of(cluster.specs.rows[job.spec]), 0 if gave_up else part.slots)] += 1
    for key, held in use.held.items():
        found[use_of(held, classes.of(cluster.spec_of(key)), held.slots)] += 1
    return found


def use_of(part: Part | Placed, service: str, slots: int) -> Use:
    """What a part of a job of a class uses, if it has so many slots."""
    return service, slots, dict(part.reserved).get("mem", 0.0) if part.reserved else 0.0


class Standing(NamedTuple):
    """A host in a pool: the units that it has and that are free, and what each class has there: units, on whole hosts parts."""

    capacity: int
    free: int
    on: dict[str, int]


def standing_of(pool: Pool, ledger: Ledger, host: str, uses: Counter[Use]) -> Standing:
    """How a host stands in a pool by what jobs have there."""
    on: dict[str, int] = {}
    for (service, slots, mem), count in uses.items():
        on[service] = on.get(service, 0) + count * _counted(pool, slots, mem)
    return Standing(_capacity(pool, ledger, host), _free(pool, ledger, host, on), on)


def _counted(pool: Pool, slots: int, mem: float) -> int:
    """The units that a part of a job with so many slots and so much memory has, in whole packages; of whole hosts the part."""
    if pool.type == "hosts":
        return 1
    return max(-(-slots // pool.slots) if pool.slots else 0, int(-(-mem // pool.mem)) if pool.mem else 0)


def _capacity(pool: Pool, ledger: Ledger, host: str) -> int:
    if pool.type == "hosts":
        return 1
    packages = _packages(pool, _slots(ledger, host), ledger.capacity(host, "mem"))
    return packages if pool.slots_per_host is None else min(packages, pool.slots_per_host)


def _slots(ledger: Ledger, host: str) -> int:
    """The slots of a host; of one that takes any number of jobs (MXJ ``-``), of which none are kept, its CPUs."""
    mine = ledger.host(host)
    return mine.slots if mine.slots < UNLIMITED else mine.ncpus


def _free(pool: Pool, ledger: Ledger, host: str, on: Mapping[str, int]) -> int:
    mine = ledger.host(host)
    if pool.type == "hosts":
        return int(not (mine.jobs or mine.taken or mine.exclusive))
    slots = 0 if mine.exclusive else max(0, _slots(ledger, host) - mine.taken)
    free = _packages(pool, slots, ledger.room(host, "mem") if pool.mem else None)
    return free if pool.slots_per_host is None else min(free, max(0, pool.slots_per_host - _of_owners(pool, on)))


def _packages(pool: Pool, slots: int, mem: float | None) -> int:
    found = slots // pool.slots if pool.slots else UNLIMITED
    return found if not pool.mem or mem is None else min(found, max(0, int((mem + 1e-6) // pool.mem)))


def _of_owners(pool: Pool, on: Mapping[str, int]) -> int:
    """Units of a host that the classes with a guarantee have."""
    return sum(on.get(name, 0) for name, _ in pool.distribution)


def _owner(on: Mapping[str, int]) -> str:
    """The class that has a whole host; "": none, or several share it."""
    return next(iter(on)) if len(on) == 1 else ""


class PoolUse:
    """One pool at one moment. ``hosts``: how each host that counts stands."""

    def __init__(self, pool: Pool, ledger: Ledger, hosts: Mapping[str, Standing]) -> None:
        self.pool = pool
        self.ledger = ledger
        self.total = sum(one.capacity for one in hosts.values())
        self.guaranteed = {name: amount.of(self.total) for name, amount in pool.distribution}
        self.free = {host: one.free for host, one in hosts.items()}
        """Units that are free on each host."""
        self.idle = sum(self.free.values())
        self.used: Counter[str] = Counter()
        """Service class, or "", to the units that its jobs have."""
        self.changed = set(hosts)
        """Hosts that have changed since columns of the pool were last brought up to date."""
        self._spares: dict[tuple[str, bool], int] = {}
        """(class, whether it borrows) to what ``spare`` has said since something changed."""
        self._on = {host: one.on for host, one in hosts.items()}
        """Host to what each class has there, as of ``Standing``: shared with it until it changes."""
        self._reserved: dict[str, dict[str, int]] = {}
        """Whole host to the parts of jobs of each class that are to start there later."""
        for on in self._on.values():
            if pool.type != "hosts":
                self.used.update(on)
            elif owner := _owner(on):
                self.used[owner] += 1

    def __contains__(self, host: str) -> bool:
        return host in self.free

    def take(self, host: str, use: Use, sign: int = 1, held: bool = False) -> None:
        """A part of a job more, or (``sign`` -1) less, on a host; ``held``: it is only reserved for the job.

        Who has a whole host stays its owner, whatever is reserved there for a job of others that is to start later.
        """
        if host not in self._on:
            return
        self._spares.clear()
        self.changed.add(host)
        service, slots, mem = use
        units = sign * _counted(self.pool, slots, mem)
        before = self.owner(host)
        if held and self.pool.type == "hosts":
            on = self._reserved.setdefault(host, {})
        else:
            on = self._on[host] = self._on[host].copy()
        on[service] = on.get(service, 0) + units
        if not on[service]:
            del on[service]
        if self.pool.type != "hosts":
            self.used[service] += units
        elif (after := self.owner(host)) != before:
            self.used[before] -= bool(before)
            self.used[after] += bool(after)

    def renew(self, host: str) -> None:
        """Something on a host has changed on the ledger."""
        if host in self.free:
            self._spares.clear()
            self.changed.add(host)
            free = _free(self.pool, self.ledger, host, self._on[host])
            self.idle += free - self.free[host]
            self.free[host] = free

    def shared_hosts(self) -> frozenset[str]:
        """Of whole hosts those in use that no class with a guarantee has alone: whoever fits may share them."""
        if self.pool.type != "hosts":
            return frozenset()
        return frozenset(host for host, free in self.free.items() if not free and self.owner(host) not in self.guaranteed)

    def owner(self, host: str) -> str:
        """The class that has a whole host; "": none, or several share it."""
        return _owner(self._on[host] or self._reserved.get(host, {}))

    def of_owners(self, host: str) -> int:
        """Units of a host that the classes with a guarantee have."""
        return _of_owners(self.pool, self._on[host])

    def unused(self, service: str) -> int:
        """What a class does not use of its guarantee."""
        return max(0, self.guaranteed.get(service, 0) - self.used[service])

    def spare(self, service: str, borrows: bool = False) -> int:
        """The free units that jobs of a class ("": of none) may have; ``borrows``: with what is lent of others' guarantees."""
        found = self._spares.get((service, borrows))
        if found is None:
            found = self._spares[service, borrows] = self._spare(service, borrows)
        return found

    def _spare(self, service: str, borrows: bool) -> int:
        others = [name for name in self.guaranteed if name != service]
        retain = self.pool.loan.retain if borrows and self.pool.loan is not None else None
        kept = sum(
            self.unused(name) if retain is None else min(self.unused(name), retain.of(self.guaranteed[name])) for name in others
        )
        return max(self.idle - kept, min(self.idle, self.unused(service)))

    def slots_left(self, host: str, service: str, spare: int) -> int:
        """Slots of a host that jobs of a class may have where ``spare`` units of the pool are left to them."""
        if self.pool.type == "hosts":
            if not self.free[host]:
                owner = self.owner(host)
                return 0 if owner != service and owner in self.guaranteed else UNLIMITED
            return UNLIMITED if spare > 0 else 0
        left, pool = self.free[host] - spare, self.pool
        found = UNLIMITED
        if pool.slots and left > 0:
            found = max(0, self.ledger.host(host).free - left * pool.slots)
        if pool.slots_per_host is not None and service in self.guaranteed:
            found = min(found, max(0, pool.slots_per_host - self.of_owners(host)))
        return found

    def mem_left(self, host: str, spare: int) -> float | None:
        """MB of a host that jobs may have, as of ``slots_left``; None: this pool bounds none."""
        left, room = self.free[host] - spare, self.ledger.room(host, "mem")
        return None if not self.pool.mem or left <= 0 or room is None else room - left * self.pool.mem

    def cost(self, host: str, use: Use) -> int:
        """The free units of a host that a part of a job takes."""
        service, slots, mem = use
        if self.pool.type == "hosts":
            return self.free[host]
        room = self.ledger.room(host, "mem")
        rest = _packages(self.pool, self.ledger.host(host).free - slots, None if room is None else room - mem)
        if self.pool.slots_per_host is not None and service in self.guaranteed:
            rest = min(rest, self.pool.slots_per_host - self.of_owners(host) - slots)
        return max(0, self.free[host] - rest)
