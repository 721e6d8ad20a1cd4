"""What advance reservations leave of each host: to jobs outside of reservations, and to jobs in one.

Rule: scheduler and ``accept_plan`` ask the same questions here. A job without a run limit counts as running for ever: it
starts on no slot that a reservation will need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.chunk import end_by_limit
from lavad.core.job.job import Job, Part, Placed
from lavad.core.job.run_time import limit_of
from lavad.core.job.spec import Spec
from lavad.core.lang.states import SUSPENDED
from lavad.core.rules.cpu_factors import seconds_on
from lavad.core.rules.ledger import UNLIMITED, Ledger
from lavad.core.site.pend_reason import PendReason
from lavad.core.site.reservation import Reservation, is_active, may_use

NEVER = math.inf
Ends = tuple[tuple[float, int, str], ...]
"""(end by the run limit, slots, reservation) of the jobs on a host."""


def end_of(cluster: Cluster, job: Job, spec: Spec, host: str) -> float:
    """When a started job is over on a host by its run limit; NEVER: it has none, or is suspended."""
    run = job.run
    limit = limit_of(job, spec)
    if run is None or limit is None or job.state in SUSPENDED:
        return NEVER
    return end_by_limit(run, seconds_on(cluster, spec, limit, host))


def _covers(row: Reservation, at: float, start: float) -> bool:
    """Whether it is active at a time, for a job that starts at ``start``; of a recurring one any time after its end may be."""
    return row.begin <= at and (at < row.end or (bool(row.window) and start >= row.end))


class Reserved:
    """The reservations as of ``now``. ``known``: a cache of what was read of hosts that have not changed since."""

    def __init__(self, ledger: Ledger, now: float, known: dict[str, tuple[int, Ends]] | None = None) -> None:
        self.ledger = ledger
        self.cluster = ledger.cluster
        self.now = now
        self.rows = self.cluster.reservations.rows
        self.by_host: defaultdict[str, list[tuple[Reservation, int]]] = defaultdict(list)
        for row in self.rows.values():
            for host, slots in row.hosts:
                self.by_host[host].append((row, slots))
        self._known = known if known is not None else {}
        self._used: dict[tuple[str, str], int] = {}
        self._seen = 0
        self._new: defaultdict[str, list[tuple[float, int, str]]] = defaultdict(list)
        """Host to what was placed there since, as in ``Ends``."""
        self.changed: list[str] = []
        """Reserved hosts on which something was placed since, once for each time: what was worked out before is out of date."""

    def edges(self) -> Iterator[float]:
        """Times at which reservations begin and end."""
        for row in self.rows.values():
            yield row.begin
            yield row.end

    def catch_up(self) -> None:
        """Take in what was placed on the ledger since the last time."""
        placed = self.ledger.placed
        for spec, parts in placed[self._seen :]:
            for part in parts:
                if part.host not in self.by_host:
                    continue
                self.changed.append(part.host)
                self._new[part.host].append((self._end_from_now(spec, part.host), part.slots, spec.reservation))
                self._used.pop((spec.reservation, part.host), None)
        self._seen = len(placed)

    def used(self, name: str, host: str) -> int:
        """Slots that jobs in a reservation have on a host."""
        at = (name, host)
        found = self._used.get(at)
        if found is None:
            use = self.cluster.use.hosts.get(host)
            held = () if use is None else use.held.items()
            found = sum(slots for _, slots, own in self._ends(host) if own == name)
            found += sum(part.slots for key, part in held if self.cluster.spec_of(key).reservation == name)
            self._used[at] = found
        return found

    def _ends(self, host: str) -> Ends:
        """Of all jobs on a host, those that are placed only now too."""
        new = self._new.get(host)
        return self._old_ends(host) if new is None else (*self._old_ends(host), *new)

    def _old_ends(self, host: str) -> Ends:
        use = self.cluster.use.hosts.get(host)
        if use is None:
            return ()
        known = self._known.get(host)
        if known is None or known[0] != use.touched:
            known = self._known[host] = (use.touched, tuple(self._read_ends(use.jobs)))
        return known[1]

    def _read_ends(self, jobs: dict[int, Part]) -> Iterator[tuple[float, int, str]]:
        rows, specs = self.cluster.jobs.rows, self.cluster.specs.rows
        for key, part in jobs.items():
            job = rows[key]
            spec = specs[job.spec]
            if not job.preempted_for or job.preempted_for_good:
                yield end_of(self.cluster, job, spec, part.host), part.slots, spec.reservation

    def _end_from_now(self, spec: Spec, host: str) -> float:
        limit = spec.limits.run
        return NEVER if limit is None else self.now + seconds_on(self.cluster, spec, limit, host)

    def share(self, name: str, host: str) -> int:
        """Slots that jobs in an active reservation may still take on a host."""
        row = self.rows.get(name)
        if row is None or not is_active(row, self.now):
            return 0
        self.catch_up()
        return max(0, dict(row.hosts).get(host, 0) - self.used(name, host))

    def kept(self, spec: Spec, host: str, start: float, end: float) -> int:
        """Free slots that a job outside of reservations, which runs from start to end, must leave to them."""
        rows = [(row, slots) for row, slots in self.by_host.get(host, ()) if self._counts(row, spec, start, end)]
        if not rows:
            return 0
        most = 0
        for at in {start, *(row.begin for row, _ in rows if row.begin > start)}:
            there = [(row, slots) for row, slots in rows if _covers(row, at, start)]
            if not there:
                continue
            if spec.exclusive or any(row.kind == "system" or row.whole_hosts for row, _ in there):
                return UNLIMITED
            kept = sum(max(0, slots - self._used_at(row, host, at)) for row, slots in there)
            if at > self.now and start <= self.now:
                kept -= sum(slots for over, slots, own in self._ends(host) if self._is_over(over, own, at))
            most = max(most, kept)
        return most

    def _is_over(self, end: float, own: str, at: float) -> bool:
        """Whether a job with this end is over by a time; a job in an active reservation uses that one's slots until its end."""
        row = self.rows.get(own)
        return end <= at if row is None or not is_active(row, self.now) else row.end <= at

    def _used_at(self, row: Reservation, host: str, at: float) -> int:
        return self.used(row.name, host) if is_active(row, self.now) and at < row.end else 0

    def _counts(self, row: Reservation, spec: Spec, start: float, end: float) -> bool:
        """Whether a job that runs from start to end must leave a reservation's slots alone."""
        if spec.queue in row.queues and not is_active(row, start):
            return False
        return row.begin < end and (start < row.end or bool(row.window))

    def why_not_job(self, spec: Spec) -> int:
        """Why no job of this spec may start in its reservation now, whatever the hosts are; 0: it may, or has none."""
        if not spec.reservation:
            return 0
        row = self.rows.get(spec.reservation)
        if row is None or not may_use(self.cluster.conf, row, spec.user):
            return PendReason.HOST_NO_RSVID
        return 0 if is_active(row, self.now) else PendReason.HOST_LESS_RSVSLOTS

    def why_not_part(self, spec: Spec, part: Placed) -> int:
        """Why reservations keep a part, which is not on the ledger yet, from its slots; 0: they do not."""
        if spec.reservation:
            row = self.rows.get(spec.reservation)
            if row is None or part.host not in dict(row.hosts):
                return PendReason.HOST_RSV
            return PendReason.HOST_LESS_RSVSLOTS if part.slots > self.share(row.name, part.host) else 0
        if part.host not in self.by_host:
            return 0
        self.catch_up()
        kept = self.kept(spec, part.host, self.now, self._end_from_now(spec, part.host))
        return self.why_none(spec, part.host) if kept and part.slots > self.ledger.host(part.host).free - kept else 0

    def why_not_resumed(self, spec: Spec, parts: Iterable[tuple[str, int]]) -> int:
        """Why a job that gave up its slots may not have them again: reservations that are active now keep them; 0: it may."""
        return next((self.why_none(spec, host) for host, slots in parts if slots > self.room_now(spec, host)), 0)

    def room_now(self, spec: Spec, host: str) -> int:
        """Free slots of a host that reservations which are active now leave to a job that gave up its slots; may be negative."""
        self.catch_up()
        row = self.rows.get(spec.reservation)
        if row is not None and is_active(row, self.now):
            return self.share(spec.reservation, host)
        return self.ledger.host(host).free - self.kept(spec, host, self.now, self.now + 1e-3)

    def why_none(self, spec: Spec, host: str) -> int:
        """The pend reason of a host whose slots a job may not have."""
        return PendReason.HOST_LESS_RSVSLOTS if spec.reservation else self.reason(host)

    def reason(self, host: str) -> int:
        """The same for a job outside of reservations."""
        active = any(is_active(row, self.now) for row, _ in self.by_host.get(host, ()))
        return PendReason.HOST_ADRSV_ACTIVE if active else PendReason.HOST_LESS_DURATION
