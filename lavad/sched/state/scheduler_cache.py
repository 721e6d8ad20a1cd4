"""What the scheduler keeps between cycles. Only a cache: with an empty one, the same plan comes out.

Rule: all that is kept here names what it was made from, and is made again when that has changed.
"""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import HostUse
from lavad.core.cluster.versioned_table import Pending
from lavad.core.lang.resreq.text import Expr
from lavad.core.lang.states import HostState
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft, WhyClass
from lavad.core.rules.cpu_factors import RunTimes
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.reserved import Ends
from lavad.core.site.conf import Conf
from lavad.core.site.host import Host
from lavad.core.site.limit_book import LimitBook
from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.arrays import Mask
from lavad.sched.needs.columns import FEW, Columns
from lavad.sched.needs.eligibility import Codes, Eligibility
from lavad.sched.needs.kinds import Kind, Needs
from lavad.sched.needs.needs import Need, dynamic_names, increasing_names
from lavad.sched.needs.rows import Row
from lavad.sched.needs.rules import Rules
from lavad.sched.order.ranking import Ranking, Scorer, Stream
from lavad.sched.state.changed_hosts import ChangedHosts
from lavad.sched.state.goal_cache import GoalCache, goal_cache
from lavad.sched.state.pool_cache import PoolCache
from lavad.sched.state.turns import Turns
from lavad.sched.state.window_cache import WindowCache

Order = tuple[int, tuple[float, ...], int, float, float, float, float, int, int]
"""Place of a job among all, smallest first: priority of the queue (or its fair share's queues), what moves (fair share or
absolute priority; () where nothing does), queue priority, user priority, btop/bbot, SCHEDULER, submission, job, index."""

SPARE = 1000
"""What is kept of classes that have no pending job any more, at most."""
LOOKS = 1_000
"""Classes that are looked at in one cycle only to learn why they wait by now."""
WEEK = 604_800
ZONE_ERROR = 2.0
"""Seconds; local time is in whole seconds."""


def _zone(now: float, local: Local) -> float:
    """How many seconds the local week is ahead of the clock."""
    return (local[0] * 86_400 + local[1] - now) % WEEK


Place = tuple[float, float, int, int]
"""Place of a job in its class: (position by btop or bbot, submission time as queued, job id, index)."""


_NO_REASONS: dict[int, int] = {}


class PendingClass:
    """A class with pending jobs: its kind and amount, its place in line, and what blocks it."""

    __slots__ = (
        "alone",
        "amount",
        "blocked",
        "head",
        "jobs",
        "kind",
        "never",
        "pending",
        "placed",
        "places",
        "stale",
        "stream",
        "touched",
        "tried",
        "unreserved",
    )

    def __init__(self, of: tuple[Kind, float] | None = None) -> None:
        self.kind: Kind | None = None
        self.amount = 0.0
        if of is not None:
            self.kind, self.amount = of
        self.pending: Pending | None = None
        self.touched = -1
        self.head: Order | None = None
        self.alone = False
        """Whether it has one job, of which nothing but its submission is known."""
        self.stream: Stream | None = None
        self.places: list[tuple[Place, int, int]] | None = None
        """(place, key, its ``Pending.came``) in order, where the cluster does not keep them in order; those whose value
        is another by now have left."""
        self.placed = 0
        """``Pending.touched`` up to which jobs have been put into ``places``."""
        self.blocked = -1
        """Last cycle in which hosts had no room for its next job; -1: it must be looked at."""
        self.never = False
        """Whether not even empty hosts had room for it then."""
        self.tried = -1
        """Last cycle in which all hosts were asked why they have no room for it."""
        self.stale = False
        """Whether hosts may have other reasons by now."""
        self.unreserved = -1
        """Last cycle in which nothing could be reserved for it; -1: it was not tried, or something could."""
        self.jobs = _NO_REASONS
        """Single jobs to their own pend reasons."""


class SchedulerCache:
    """The cache of one scheduler. ``few``: the number of hosts from which on it works with columns.

    ``chunks``: it puts jobs into chunks; for a prediction each starts in a slot of its own.
    """

    idle: tuple[int, int, int, float, float] | None = None
    """If the last cycle decided nothing: its version, ``rows_seen`` and ``state_seen``, when to wake, its time zone."""
    soft_due = 0.0
    """When a job may have reached its soft run limit (EXTENDABLE_RUNLIMIT) next."""
    mixed = False
    """Hosts that are up have starters of different protocols."""
    _factors_seen = False
    """Whether ``run_times`` is of the factors as they are."""

    def __init__(self, few: int = FEW, chunks: bool = False) -> None:  # noqa: PLR0915 - fields only
        self.few, self.chunks = few, chunks
        self.cycle = 0
        self.scorer: Scorer | None = None
        """Asks a site's own SCHEDULER modules; None: their scores count as 0."""
        self.conf: Conf | None = None
        self.book = LimitBook(Conf())
        self.run_times = RunTimes(Cluster())
        self.rows: list[Row] = []
        self.by_name: dict[str, Row] = {}
        self.columns: Columns | None = None
        self._hosts: tuple[object, int] | None = None
        """The table of hosts that the rows are of, and its ``moves``."""
        self.codes: list[int] = []
        """Pend reason of each host's state by row number; 0: it takes jobs."""
        self.needs = Needs()
        self.role_needs: dict[int, tuple[Need, tuple[Need, ...]]] = {}
        """Class with roles to its need, and the needs of one task of each role."""
        self.eligibilities: dict[tuple[object, ...], Eligibility] = {}
        self.masks: dict[tuple[Expr, str], tuple[tuple[int, int], Mask]] = {}
        self.codes_by_host: dict[tuple[object, ...], tuple[int, Codes]] = {}
        """What of an ``eligible_key`` asks what hosts are to (``state_seen``, reason of each host) (``state.eligible``)."""
        self.limit_hosts: dict[int, Mask] = {}
        """Limit of lsb.resources, by its place, to the hosts that it counts."""
        self.units: dict[str, dict[str, int]] = {}
        """Type of compute units to each host's number of its unit."""
        self.texts: set[str] = set()
        """Resources whose value is a text on some host."""
        self.classes: dict[int, PendingClass] = {}
        self.line: list[tuple[Order, int]] = []
        self.streams: dict[Stream, list[tuple[Order, int]]] = {}
        self.ranking = Ranking(Conf())
        self.windows = WindowCache()
        self.state_seen = 0
        """Grows when a host's record, window or membership changes."""
        self.rows_seen = 0
        """Grows when any row was renewed."""
        self.changed, self.looks = ChangedHosts(), 0
        """At so many blocked classes this cycle may still look, only to learn why they wait now."""
        self.turns, self.reserving = Turns(), Turns()
        """Of classes that stay blocked, to learn why they wait now; of those for which nothing could be reserved."""
        self.retry_blocked = False
        """Something is reserved, suspended or preempted: blocked classes are looked at again in each cycle."""
        self.rules = Rules(Conf())
        self.dynamic: frozenset[str] = frozenset()
        self.increasing: frozenset[str] = frozenset()
        self.host_windows: dict[str, tuple[str, ...]] = {}
        self.clients: frozenset[str] = frozenset()
        """Hosts that only submit jobs."""
        self.deserved: tuple[dict[str, int], ...] = ()
        """Queue to what it deserved in the cycle before, of each resource that queues own parts of."""
        self.pools = PoolCache(Conf())
        self.goals: GoalCache | None = None
        self.reservations: tuple[object, ...] = ()
        """(advance reservation, whether it was active) of the cycle before."""
        self.ends: dict[str, tuple[int, Ends]] = {}
        """Reserved host to when its jobs end, as of a ``touched`` of the host."""
        self.why: dict[int, WhyClass] = {}
        """Why each class waits: plans carry only what is new."""
        self.why_job: dict[int, int] = {}

    def renew(self, ledger: Ledger, soft: Soft, local: Local) -> None:
        """Bring everything up to the cluster as it is, at the start of a cycle."""
        cluster = ledger.cluster
        self.cycle += 1
        self.changed.cycle = self.cycle
        if cluster.conf is not self.conf:
            self._configure(cluster.conf)
        if self._hosts != (cluster.hosts, cluster.hosts.moves):
            self._hosts = cluster.hosts, cluster.hosts.moves
            if self.by_name.keys() != cluster.hosts.rows.keys():
                self._count_rows(cluster)
        self._renew_rows(ledger, soft, local)
        if not self._factors_seen:
            self._renew_run_times(cluster)
        if self.goals is not None:
            self.goals.renew(self.classes, self.windows.clock(local))
        if len(self.eligibilities) > SPARE + 4 * len(self.classes):
            self.eligibilities.clear()
        self.retry_blocked = self.retry_blocked or bool(cluster.suspended or cluster.promised)
        if self.retry_blocked:
            self.changed.note_all()
        self.looks = LOOKS

    def is_passed_over(self, entry: PendingClass) -> bool:
        """Where nothing can start: whether it is known why a class waits. It is not once a host was closed, or is back."""
        if entry.blocked >= 0 and (entry.blocked < self.changed.everything or entry.stale):
            self.looks -= 1
            return self.looks < 0
        return entry.blocked >= 0

    def _renew_run_times(self, cluster: Cluster) -> None:
        self.run_times, self._factors_seen = RunTimes(cluster), True
        self.ends.clear()
        if "shortest" in self.ranking.policy_names.values():
            for entry in self.classes.values():
                entry.touched = -1  # its place in line is to be worked out again

    def _configure(self, conf: Conf) -> None:
        """Forget all that was made from the old configuration."""
        self.conf = conf
        self.book = LimitBook(conf)
        self._factors_seen = False
        self.rows, self.by_name = [], {}
        self._hosts = None
        for made in (self.eligibilities, self.masks, self.codes_by_host, self.limit_hosts, self.units):
            made.clear()
        self.forget_classes(conf)
        self.ranking = Ranking(conf)
        self.dynamic = dynamic_names(conf)
        self.increasing = increasing_names(conf)
        windows = ((host.name, (host.dispatch_window, host.run_window)) for host in conf.hosts)
        self.host_windows = {name: texts for name, texts in windows if any(texts)}
        self.clients = frozenset(host.name for host in conf.hosts if not host.server)
        self.rules = Rules(conf)
        self.soft_due = 0.0
        self.state_seen += 1

    def forget_classes(self, conf: Conf) -> None:
        """Forget all that is known of classes and their jobs, and keep what is known of hosts."""
        for kept in (self.needs, self.role_needs, self.classes, self.line, self.streams, self.why, self.why_job, self.ends):
            kept.clear()
        self.turns, self.reserving = Turns(), Turns()
        self.retry_blocked, self.idle = False, None
        self.reservations = self.deserved = ()
        self.pools = PoolCache(conf)
        self.goals = goal_cache(conf)

    def _count_rows(self, cluster: Cluster) -> None:
        """Rebuild all rows: there are other hosts than before."""
        self.rows = [Row(at, name) for at, name in enumerate(sorted(cluster.hosts.rows))]
        self.by_name = {row.name: row for row in self.rows}
        self.columns = Columns(len(self.rows)) if len(self.rows) >= self.few else None
        self.changed.as_arrays = self.columns is not None
        self.codes = [-1] * len(self.rows)
        self._factors_seen = False
        for made in (self.eligibilities, self.masks, self.codes_by_host, self.limit_hosts, self.texts):
            made.clear()

    def _renew_rows(self, ledger: Ledger, soft: Soft, local: Local) -> None:
        hosts = ledger.cluster.hosts.rows
        names = self.by_name
        known = zip(
            self.rows,
            map(hosts.__getitem__, names),
            map(ledger.cluster.use.hosts.get, names),
            map(soft.load.get, names),
            strict=True,
        )
        renewed = others = False
        for row, host, use, load in known:
            if row.host is host and row.load is load and row.use is use and row.touched == (-1 if use is None else use.touched):
                continue
            renewed = True
            others = others or row.host is not host
            self._renew_row(row, ledger, host, use, load)
            self._renew_code(row, local)
        for name in self.host_windows:
            if name in self.by_name:
                self._renew_code(self.by_name[name], local)
        if others:
            self.mixed = len({row.host.facts.starter for row in self.rows if row.host.state is HostState.OK}) > 1
        self.rows_seen += renewed
        self.changed.keep()

    def _renew_row(self, row: Row, ledger: Ledger, host: Host, use: HostUse | None, load: Mapping[str, float] | None) -> None:
        if row.load is not load:
            self.changed.note_load(row.index)
        if row.host is not host:
            self.state_seen += 1
            if _speed(row.host) != _speed(host):
                self._factors_seen = False
            if _goes_with(row.host) != _goes_with(host):
                self.changed.note_all()  # it may go together with others now, or have GPUs that it had not
        if row.renew(ledger, host, use, load):
            self.changed.note_room(row.index)
        if self.columns is not None:
            self.columns.renew(row)

    def _renew_code(self, row: Row, local: Local) -> None:
        code = self._code_of(row, local)
        if code != self.codes[row.index]:
            self.codes[row.index] = code
            if self.columns is not None:
                self.columns.codes[row.index] = code
            self.state_seen += 1
            self.changed.note_all()

    def _code_of(self, row: Row, local: Local) -> int:
        host = row.host
        if host.state is not HostState.OK:
            return PendReason.SBD_UNREACH
        if host.closed:
            return PendReason.HOST_DISABLED
        if row.name in self.clients:
            return PendReason.HOST_QUE_MEMB
        if row.load is None:
            return PendReason.LOAD_UNAVAIL
        texts = self.host_windows.get(row.name, ())
        return 0 if all(self.windows.is_open(text, local) for text in texts) else PendReason.HOST_WINDOW

    def note_idle(self, plan: Plan, now: float, local: Local) -> None:
        """A cycle is over: if it decided nothing, the next need not look while nothing changes."""
        still = not (plan.decides or self.retry_blocked or self.looks <= 0)
        self.idle = (plan.version, self.rows_seen, self.state_seen, plan.wake_at, _zone(now, local)) if still else None

    def find_idle_wake_time(self, cluster: Cluster, now: float, local: Local) -> float | None:
        """The wake-up time (0.0: none) if nothing has changed since the last cycle, which decided nothing; else None."""
        if self.idle is None or self.retry_blocked or self.idle[:3] != (cluster.version, self.rows_seen, self.state_seen):
            return None
        _, _, _, wake_at, zone = self.idle
        # when local clocks are set back or forth, windows open at another time
        is_same_zone = abs(zone - _zone(now, local)) % (WEEK - ZONE_ERROR) <= ZONE_ERROR
        return wake_at if is_same_zone and (not wake_at or now < wake_at) else None

    def need(self, cluster: Cluster, number: int) -> Need | None:
        """The need of a class; None: its queue is gone."""
        return self.needs.of(cluster, number)

    def units_of(self, conf: Conf, kind: str) -> dict[str, int]:
        """Host to the number of its compute unit of a type (as ``unit_type_of`` reads it); numbers in the order of lsb.hosts."""
        kind = conf.params.unit_type_of(kind)
        if kind not in self.units:
            named = [unit.name for unit in conf.params.units if unit.type == kind]
            self.units[kind] = {host: at for at, unit in enumerate(named) for host in conf.groups_of_hosts.hosts(unit)}
        return self.units[kind]

    def forget(self, number: int) -> None:
        """Forget a class that has no pending job any more."""
        entry = self.classes.pop(number)
        self.needs.forget(number)
        self.role_needs.pop(number, None)
        self.why.pop(number, None)
        if self.goals is not None:
            self.goals.leave(number)
        for key in entry.jobs:
            self.why_job.pop(key, None)

    def set_job_reasons(self, entry: PendingClass, reasons: dict[int, int]) -> None:
        """The pend reasons of single jobs of a class are these now."""
        for key in entry.jobs:
            self.why_job.pop(key, None)
        entry.jobs = reasons
        self.why_job.update(reasons)

    def job_reasons(self, cluster: Cluster) -> dict[int, int]:
        """All pend reasons of single jobs."""
        return dict.fromkeys(cluster.promised, int(PendReason.SLOTS_HELD)) | self.why_job

    def forget_job_reasons(self, entry: PendingClass) -> None:
        """No single job of a class has a pend reason of its own."""
        if entry.jobs:
            self.set_job_reasons(entry, _NO_REASONS)


def _speed(host: Host) -> tuple[str, float]:
    return host.facts.model, host.facts.cpu_factor


def _goes_with(host: Host) -> tuple[object, ...]:
    """What a host's own free slots do not show when it may take jobs that it could not before."""
    return host.facts.starter, host.facts.gpus, host.closed_gpus
