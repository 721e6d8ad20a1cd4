"""The cluster as the master knows it: live records in tables, and indexes derived from them.

Records are frozen; ``put`` and ``drop`` are the only ways to change a table. Each table remembers the values that rows had
when the batch began: from them follow the rows to store, and the state to return to when a commit fails. Finished jobs leave
memory.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from lavad.core.cluster.accounts import Accounts, same
from lavad.core.cluster.charge import Account, Charge, hist_hours
from lavad.core.cluster.conditions import Conditions
from lavad.core.cluster.job_rows import JobRows, place_of_submitted
from lavad.core.cluster.key_set import KeySet
from lavad.core.cluster.named_jobs import Names
from lavad.core.cluster.records import add_to, is_as_large, units_of, units_of_spec
from lavad.core.cluster.usage_index import UsageIndex, changed_parts, only_elements
from lavad.core.cluster.versioned_table import Pending, Table, submission_order
from lavad.core.job.depend import NEVER, Ended, Jobs
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Array, Job
from lavad.core.job.memory import Learnt
from lavad.core.job.pace import Pace
from lavad.core.job.spec import Spec
from lavad.core.lang.states import WAITING, JobState
from lavad.core.site.conf import Conf, QueueAdmin
from lavad.core.site.host import Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.service_classes import MissedGoals, ServiceClasses
from lavad.core.site.tokens import UserTokens

KEPT_SPECS = 200
_Told = tuple[tuple[float, float], float, MissedGoals]


class Cluster:
    """All live state. ``apply`` alone changes it; ``forget_changes`` and ``undo_changes`` end a batch of changes."""

    master_since = 0.0
    """When the present master took over."""
    exceptions_told = 0.0
    """Administrators know the exceptions of jobs that ended before this time; 0.0: they were never told of any."""
    goals_missed: MissedGoals = ()

    def __init__(self) -> None:  # noqa: PLR0915 - a table or an index each
        self.version = 0
        """Sequence number of the newest event applied."""
        self.epoch, self.incarnation, self.next_job, self.next_spec = 0, "", 1, 1
        self.former: dict[str, float] = {}
        """Incarnations from whose backups the store was restored, with the times of the backups."""
        self.extended = (0.0, 0.0)
        """badmin lease extend: (when it was asked or last noted, seconds that were left then)."""
        self.use = UsageIndex()
        self.pending: dict[int, Pending] = {}
        """Spec number to its pending jobs."""
        self.elements: dict[int, dict[int, None]] = {}
        """Array id to the keys of its touched live elements."""
        self.spec_jobs: dict[int, int] = {}
        """Spec number to the live jobs and arrays that have it."""
        self.copy_sources: Counter[str] = Counter()
        """Names of copies of checkpoints to the classes of live jobs that go on from them, with brestart."""
        self.timed: Counter[int] = Counter()
        """Numbers of the specs of live jobs in which time alone may do something (``Spec.is_timed``)."""
        self.spec_numbers: dict[Spec, int] = {}
        self.idle_specs: dict[int, None] = {}
        self.by_user: dict[str, KeySet] = {}
        """User to the keys of live jobs, arrays and touched elements."""
        self.records: Counter[str] = Counter()
        """User to the units of memory (``cluster.records``) of live jobs, arrays and their specs."""
        self.groups_of: Counter[str] = Counter()
        """User to the number of job groups that are theirs."""
        self.started: dict[int, None] = {}
        """Keys of jobs with an attempt."""
        self.suspended: dict[int, None] = {}
        """Keys of jobs that the system suspended or preempted."""
        self.promised: dict[int, None] = {}
        """Keys of pending jobs with reserved slots."""
        self.held_back: dict[int, None] = {}
        """Keys of pending jobs with ``not_before`` or another reason of their own."""
        self.hist_hours: dict[str, float] = {}
        """Queue with fair share to its HIST_HOURS."""
        self.accounts = Accounts()
        self.charges: Table[Account, Charge] = Table()
        """Decayed usage of finished attempts, for fair share."""
        self.learnt: Table[str, Learnt] = Table()
        self.paces: Table[str, Pace] = Table()
        self.tokens: Table[str, UserTokens] = Table()
        self.groups: Table[str, JobGroup] = Table(self._group_moved)
        self.reservations: Table[str, Reservation] = Table()
        self.conditions = Conditions()
        self.ended: Table[int, Ended] = Table()
        """Job ids that conditions name, with what of them has finished."""
        self.names = Names()
        self.finished: dict[int, Job] = {}
        """Jobs that finished in this batch: their last records, for the store and for waiting callers."""
        self.finished_arrays: dict[int, Array] = {}
        """Arrays whose last element finished in this batch: their last records."""
        self.jobs: Table[int, Job] = Table(self._job_moved, JobRows())
        self.arrays: Table[int, Array] = Table(self._array_moved)
        self.specs: Table[int, Spec] = Table(self._spec_moved)
        self.hosts: Table[str, Host] = Table()
        self.queues: Table[str, QueueAdmin] = Table()
        self.configure(Conf())
        self._kept = self._single()

    def _single(self) -> tuple[tuple[int, int, str, dict[str, float]], _Told, tuple[int, int], Conf]:
        """The state that is in no table."""
        store = self.version, self.epoch, self.incarnation, self.former
        return store, (self.extended, self.exceptions_told, self.goals_missed), (self.next_job, self.next_spec), self.conf

    def configure(self, conf: Conf) -> None:
        """Take a configuration."""
        self.conf = conf
        self.queue_conf = {queue.name: queue for queue in conf.queues}
        self.host_conf = {host.name: host for host in conf.hosts}
        self.hist_hours = hist_hours(conf)
        self.service_classes = ServiceClasses(conf)

    def spec_of(self, key: int) -> Spec:
        """The spec of a live job, element or array."""
        return self.specs.rows[self.get(key).spec]

    def get(self, key: int) -> Job | Array:
        """The live job or touched element, or the array that an untouched element or a plain array id names."""
        job = self.jobs.rows.get(key)
        return job if job is not None else self.arrays.rows[key & 0xFFFFFFFF]

    def find_job(self, key: int) -> Job | None:
        """The live job or touched element of this key."""
        return self.jobs.rows.get(key)

    def find_array(self, key: int) -> Array | None:
        """The live array that this key or the array of this element names."""
        return self.arrays.rows.get(key & 0xFFFFFFFF)

    def queue_state(self, name: str) -> QueueAdmin:
        """The administrative state of a queue; open and active by default."""
        return self.queues.rows.get(name) or QueueAdmin(name=name)

    def slots_of(self, host: str) -> int:
        """How many slots a host has (MXJ; -1 is unlimited), by configuration or CPUs."""
        conf = self.host_conf.get(host)
        if conf is not None and conf.slots is not None:
            return conf.slots
        known = self.hosts.rows.get(host)
        return known.facts.ncpus if known is not None else 0

    def _tables(self) -> tuple[Table[Any, Any], ...]:
        site = self.hosts, self.queues, self.groups, self.reservations
        return self.jobs, self.arrays, self.specs, *site, self.charges, self.learnt, self.paces, self.tokens, self.ended

    def forget_changes(self) -> None:
        """Forget the changes of a batch, which is committed."""
        for table in self._tables():
            table.changed.clear()
        self.finished.clear()
        self.finished_arrays.clear()
        self._kept = self._single()

    def undo_changes(self) -> None:
        """Undo the changes of a batch that could not be committed."""
        for number, spec in self.specs.changed.items():
            if spec is not None:
                self.specs.rows[number] = spec  # dropped in this batch, and jobs that come back may need it
        self.jobs.undo()
        self.arrays.undo()
        self.specs.undo()
        self.spec_numbers = {spec: number for number, spec in self.specs.rows.items()}
        idle = [*self.idle_specs, *self.specs.rows]
        self.idle_specs = {n: None for n in idle if n in self.specs.rows and n not in self.spec_jobs}
        for table in self._tables():  # of those above nothing is left to undo
            table.undo()
        self.use.unheld.clear()
        self.conditions.undone()
        (self.version, self.epoch, self.incarnation, self.former), told, (self.next_job, self.next_spec), conf = self._kept
        self.extended, self.exceptions_told, self.goals_missed = told
        if conf is not self.conf:
            self.configure(conf)
        self.finished.clear()
        self.finished_arrays.clear()

    def _spec_moved(self, old: Spec | None, new: Spec | None) -> None:
        if new is None and old is not None:
            self.spec_numbers.pop(old, None)

    def _job_moved(self, old: Job | None, new: Job | None) -> None:
        if old is not None and new is not None and (parts := changed_parts(old, new)) is not None:
            self.use.parts(new, self.specs.rows[new.spec], parts)
            return
        self._weigh(old, new)
        self._account(old, new)
        if old is not None:
            self._unindex(old)
        if new is not None:
            self._index(new)
        if old is None or new is None or old.spec != new.spec:
            self._retain(old, new)
        if (old is not None and old.blocked) or (new is not None and new.blocked):
            self._depend(old, new)
        if self.conditions.named or self.names.rows is not None:
            self._depended(old, new)

    def _depended(self, old: Job | None, new: Job | None) -> None:
        """Notify the conditions that name the job, if something that they may ask about has changed."""
        key = old.key if old is not None else new.key if new is not None else 0
        self.names.moved(key, None if old is None else old.name, None if new is None else new.name)
        if old is None or new is None or old.state != new.state or old.messages != new.messages:
            self.conditions.job_changed(key & 0xFFFFFFFF)

    def _depend(self, old: Job | None, new: Job | None) -> None:
        """Index who waits for which condition."""
        was = old.depend if old is not None and old.blocked else None
        now = new.depend if new is not None and new.blocked else None
        row = new or old
        if row is not None and (was is not None or now is not None):
            self._forget_ended(self.conditions.moved(row.key, was, now, row is new and row.blocked == NEVER))

    def _forget_ended(self, jobs: list[int]) -> None:
        for job in jobs:
            if job in self.ended.rows:
                self.ended.drop(job)

    def find_named(self, name: str, prefix: bool, user: str | None) -> Jobs:
        """Live jobs and arrays of a name, or of all names that begin so; of a user, or of all (None)."""
        self.names.of(
            lambda: [
                *((job.name, job.key) for job in self.jobs.rows.values() if not job.key >> 32),
                *((array.name, array.job) for array in self.arrays.rows.values()),
            ]
        )
        return self.names.find(name, prefix, user, lambda key: self.spec_of(key).user)

    def _account(self, old: Job | None, new: Job | None) -> None:
        was = None if old is None else old.run
        now = None if new is None else new.run
        if was is None and now is None:
            return
        if was is not None and now is not None and old is not None and new is not None:  # noqa: SIM102
            if old.spec == new.spec and (was is now or same(was, now)):
                return
        if was is not None and old is not None:
            self.accounts.add(was, self.specs.rows[old.spec], -1)
        if now is not None and new is not None:
            self.accounts.add(now, self.specs.rows[new.spec], 1)

    def _index(self, job: Job) -> None:
        spec = self.specs.rows[job.spec]
        self.use.job(job, spec, 1)
        if job.state is JobState.PEND and not job.blocked:
            self._queue_up(job.key, job, job.position == 0.0 == job.queue_time)
        if job.run is not None:
            self.started[job.key] = None
            if job.preempted_for or job.state is JobState.SSUSP:
                self.suspended[job.key] = None
        elif job.promised:
            self.promised[job.key] = None
        if job.state in WAITING and (job.not_before or job.reason or job.avoid or job.barred):
            self.held_back[job.key] = None
        if job.key >> 32:
            self.elements.setdefault(job.key & 0xFFFFFFFF, {})[job.key] = None

    def _unindex(self, job: Job) -> None:
        spec = self.specs.rows[job.spec]
        self.use.job(job, spec, -1)
        if job.state is JobState.PEND:
            self._leave(job.key, job.spec)
        if job.run is not None:
            self.started.pop(job.key, None)
        self.suspended.pop(job.key, None)
        self.promised.pop(job.key, None)
        self.held_back.pop(job.key, None)
        if job.key >> 32:
            siblings = self.elements[job.key & 0xFFFFFFFF]
            del siblings[job.key]
            if not siblings:
                del self.elements[job.key & 0xFFFFFFFF]

    def _weigh(self, old: Job | Array | None, new: Job | Array | None) -> None:
        if old is not None and new is not None and is_as_large(old, new):
            return
        for record, sign in ((old, -1), (new, 1)):
            if record is not None:
                self.count_units(self.specs.rows[record.spec].user, sign * units_of(record))

    def count_units(self, user: str, units: int) -> None:
        """Records of a user take so many more units of memory."""
        add_to(self.records, user, units)

    def count_class(self, number: int, sign: int) -> None:
        """A spec has its first live job or array, or has lost the last one."""
        spec = self.specs.rows[number]
        self.count_units(spec.user, sign * units_of_spec(spec))
        if spec.checkpoint is not None and spec.checkpoint.of_copies:
            add_to(self.copy_sources, spec.checkpoint.of_copies, sign)
        if spec.is_timed:
            add_to(self.timed, number, sign)

    def _group_moved(self, old: JobGroup | None, new: JobGroup | None) -> None:
        for group, sign in ((old, -1), (new, 1)):
            if group is not None:
                add_to(self.groups_of, group.owner, sign)

    def _array_moved(self, old: Array | None, new: Array | None) -> None:
        if old is not None and new is not None and only_elements(old, new):
            self._elements_moved(old, new)
            return
        self._weigh(old, new)
        if old is not None:
            spec = self.specs.rows[old.spec]
            self.use.array(old, spec, -1)
            stands = new is not None and (new.position, new.queue_time) == (old.position, old.queue_time)
            if new is None or new.spec != old.spec or not new.may_start or not stands:
                self._leave(old.job, old.spec)
        if new is not None:
            spec = self.specs.rows[new.spec]
            self.use.array(new, spec, 1)
            if new.may_start:
                self._queue_up(new.job, new, new.position == 0.0 == new.queue_time)
        if old is None or new is None or old.spec != new.spec:
            self._retain(old, new)
        self._array_depends(old, new)
        key = old.job if old is not None else new.job if new is not None else 0
        self.names.moved(key, None if old is None else old.name, None if new is None else new.name)
        if self.conditions.named:
            self.conditions.job_changed(key)

    def _elements_moved(self, old: Array, new: Array) -> None:
        if old.pending is not new.pending:
            self._weigh(old, new)
            self.use.untouched(self.specs.rows[new.spec], len(new.pending) - len(old.pending))
            if new.may_start:
                self._queue_up(new.job, new, new.position == 0.0 == new.queue_time)
            else:
                self._leave(new.job, new.spec)
        if self.conditions.named:
            self.conditions.job_changed(new.job)

    def _array_depends(self, old: Array | None, new: Array | None) -> None:
        was = old.depend if old is not None and old.waiting else None
        now = new.depend if new is not None and new.waiting else None
        row = new or old
        if row is not None and (was is not None or now is not None):
            self._forget_ended(self.conditions.moved(row.job, was, now, row is new and bool(row.never)))

    def _queue_up(self, key: int, row: Job | Array, in_order: bool) -> None:
        pending = self.pending.get(row.spec)
        if pending is None:
            pending = self.pending[row.spec] = Pending()
        elif key in pending:
            pending.touched += 1
            return
        elif in_order:
            last = pending.newest()
            place = place_of_submitted(self.jobs.rows, last) or submission_order(self.get(last), last)
            in_order = place < submission_order(row, key)
        pending.add(key, in_order)

    def _leave(self, key: int, spec: int) -> None:
        pending = self.pending.get(spec)
        if pending is not None:
            pending.discard(key)
            if not pending:
                del self.pending[spec]

    def _retain(self, old: Job | Array | None, new: Job | Array | None) -> None:
        """Index whose it is, and that its spec is needed."""
        if new is not None:
            spec = self.specs.rows[new.spec]
            if new.spec not in self.spec_jobs:
                self.count_class(new.spec, 1)
            self.spec_jobs[new.spec] = self.spec_jobs.get(new.spec, 0) + 1
            self.idle_specs.pop(new.spec, None)
        if old is not None:
            spec = self.specs.rows[old.spec]
            keys = self.by_user[spec.user]
            keys.discard(_key_of(old))
            if not keys:
                del self.by_user[spec.user]
            self.spec_jobs[old.spec] -= 1
            if not self.spec_jobs[old.spec]:
                self.forget_class(old.spec)
        if new is not None:
            self.by_user.setdefault(self.specs.rows[new.spec].user, KeySet()).add(_key_of(new))

    def forget_class(self, spec: int) -> None:
        """No live job has this spec any more. The newest such specs are kept, as the next job often has the same."""
        del self.spec_jobs[spec]
        self.count_class(spec, -1)
        self.idle_specs[spec] = None
        if len(self.idle_specs) > KEPT_SPECS:
            oldest = next(iter(self.idle_specs))
            del self.idle_specs[oldest]
            self.specs.drop(oldest)


def _key_of(row: Job | Array) -> int:
    return row.key if isinstance(row, Job) else row.job
