"""A guaranteed pool's hosts as numpy columns of shape (hosts,): what ``PoolUse`` says of one host, of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from lavad.core.rules.guarantees.pools import PoolUse
from lavad.core.rules.ledger import UNLIMITED
from lavad.sched.needs.arrays import Floats, Ints, Mask, np
from lavad.sched.needs.rows import Row


class PoolColumns:
    """``rows``: all hosts by name, in their order. Kept up to date host by host as ``use`` changes."""

    def __init__(self, use: PoolUse, rows: Mapping[str, Row]) -> None:
        count = len(rows)
        self.use = use
        self._rows = rows
        self.members: Mask = np.array([name in use for name in rows], dtype=np.bool_)
        self._free: Ints = np.zeros(count, dtype=np.int64)
        """Units that are free."""
        self._slots: Ints = np.zeros(count, dtype=np.int64)
        self._of_owners: Ints = np.zeros(count, dtype=np.int64)
        self._owner: Ints = np.full(count, -1, dtype=np.int64)
        """The class with a guarantee that has the whole host, as its place among these; -1: none."""
        self._mem: Floats = np.full(count, inf)
        self._places = {name: at for at, name in enumerate(use.guaranteed)}
        self._known: dict[tuple[str, int], Ints] = {}
        """Answers of ``slots_left`` since something has changed."""

    def _catch_up(self) -> None:
        use = self.use
        if not use.changed:
            return
        for host in use.changed:
            at = self._rows[host].index
            self._free[at] = use.free[host]
            self._slots[at] = use.ledger.host(host).free
            self._of_owners[at] = use.of_owners(host)
            self._owner[at] = self._places.get(use.owner(host), -1)
            room = use.ledger.room(host, "mem") if use.pool.mem else None
            self._mem[at] = inf if room is None else room
        use.changed.clear()
        self._known.clear()

    def slots_left(self, service: str, spare: int) -> Ints:
        """As of ``PoolUse``; UNLIMITED on hosts that are not in the pool. Not the caller's to change."""
        self._catch_up()
        found = self._known.get((service, spare))
        if found is None:
            found = self._known[service, spare] = self._slots_left(service, spare)
        return found

    def _slots_left(self, service: str, spare: int) -> Ints:
        pool = self.use.pool
        found: Ints = np.full(len(self.members), UNLIMITED, dtype=np.int64)
        if pool.type == "hosts":
            others = (self._owner >= 0) & (self._owner != self._places.get(service, -1))
            found[self.members & np.where(self._free > 0, spare <= 0, others)] = 0
            return found
        left = self._free - spare
        if pool.slots:
            kept = self.members & (left > 0)
            found[kept] = np.maximum(0, self._slots - left * pool.slots)[kept]
        if pool.slots_per_host is not None and service in self.use.guaranteed:
            most = np.maximum(0, pool.slots_per_host - self._of_owners)
            found[self.members] = np.minimum(found, most)[self.members]
        return found

    def mem_left(self, spare: int) -> Floats | None:
        """As of ``PoolUse``, MB; inf where it bounds none, None: on no host."""
        if not self.use.pool.mem:
            return None
        self._catch_up()
        left = self._free - spare
        return np.where(self.members & (left > 0), self._mem - left * self.use.pool.mem, inf)

    def most_slots(self, offered: Ints, spare: int) -> int:
        """An upper bound of the slots of the pool's hosts that one job may have in all, of what each of them offers."""
        self._catch_up()
        pool, own = self.use.pool, offered[self.members]
        free = self._free[self.members]
        if pool.type == "hosts":
            idle = np.sort(own[free > 0])
            return int(own[free == 0].sum() + idle[max(0, len(idle) - spare) :].sum())
        # slots beyond the free units of a host cost none, and each unit is a package of so many
        costless = np.clip(self._slots[self.members] - free * pool.slots, 0, own)
        return int(costless.sum() + min((own - costless).sum(), spare * pool.slots)) if pool.slots else int(own.sum())


class PoolLeft:
    """What a pool leaves to jobs of one spec: ``spare`` units of it, for ``reason`` not more.

    ``on_wait`` hears when they are held back.
    """

    def __init__(self, reason: int, columns: PoolColumns, service: str, spare: int, on_wait: Callable[[], None]) -> None:
        self.reason = reason
        self.columns = columns
        self._service = service
        self._spare = spare
        self._on_wait = on_wait

    @property
    def slots(self) -> Ints:
        """Slots that each host may give (``PoolColumns.slots_left``)."""
        return self.columns.slots_left(self._service, self._spare)

    @property
    def mem(self) -> Floats | None:
        """MB that each host may give (``PoolColumns.mem_left``)."""
        return self.columns.mem_left(self._spare)

    def most_slots(self, offered: Ints) -> int:
        """``PoolColumns.most_slots``."""
        return self.columns.most_slots(offered, self._spare)

    def note_wait(self, hosts: Mask) -> None:
        """These hosts would give them more but for the pool."""
        if hosts.any():
            self._on_wait()
