"""Suspension and resumption by the system: run windows, load thresholds, STOP_COND, RESUME_COND; resumption after preemption.

Rule: by load at most one job of a host is suspended or resumed in SBD_SLEEP_TIME seconds, so that the load has time to follow;
a closed window suspends all jobs at once. As in LSF load does not suspend the only job that runs on a host at which nobody is,
unless LSB_STOP_IGNORE_IT says so. A preempted job resumes when its slots are free, before jobs of lower queues get them.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import LOAD_INDICES
from lavad.core.decide.placement import preempt
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.resreq.eval import compile_select
from lavad.core.lang.resreq.text import ResReqError, parse
from lavad.core.lang.states import OVER, JobState, SignalKind, TermReason
from lavad.core.plan.plan import Suspension
from lavad.sched.needs.rows import Row, read_values
from lavad.sched.policy.queue_shares import QueueShares
from lavad.sched.state.cycle_state import CycleState

WINDOW = "The run windows of the queue are closed"
HOST_WINDOW = "The run windows of the host are closed"
STOP = "STOP_COND is true with current host load"


class SuspendResume:
    """The suspensions and resumptions of one cycle."""

    def __init__(self, state: CycleState, queue_shares: QueueShares | None) -> None:
        self.state = state
        self._turn = state.cluster.conf.params.sbd_sleep_time
        """Seconds between two suspensions, or two resumptions, on one host."""
        self.queue_shares = queue_shares
        self.suspensions: list[Suspension] = []
        self.resumes: list[int] = []
        self.later: list[int] = []
        """Preempted jobs of queues that already have what they deserve: they resume last, on slots lent to them."""
        self.waiting: list[tuple[int, float, int]] = []
        """Suspended jobs not yet looked at, the last to resume first: (priority of the queue, minus dispatch time, key)."""

    def begin(self) -> None:
        """Suspend what must not run now, and put in line what may resume."""
        state = self.state
        if state.cache.rules.stops:
            for key in self._to_suspend():
                job = state.cluster.jobs.rows[key[0]]
                assert job.run is not None
                reason = TermReason.TERM_WINDOW if key[1] in (WINDOW, HOST_WINDOW) else TermReason.TERM_LOAD
                self.suspensions.append(Suspension(key[0], job.run.uid, key[1], reason))
                state.preempted.add(key[0])
        for key_ in state.cluster.suspended:
            job = state.cluster.jobs.rows[key_]
            if job.state is JobState.SSUSP and job.run is not None and not job.preempted_for_good:
                queue = state.cluster.queue_conf.get(state.cluster.specs.rows[job.spec].queue)
                self.waiting.append((queue.priority if queue is not None else 0, -job.run.dispatched, key_))
        self.waiting.sort()

    def resume(self, priority: int) -> None:
        """Resume eligible jobs of at least this priority; free slots of those that cannot resume yet are kept from lower jobs."""
        while self.waiting and self.waiting[-1][0] >= priority:
            key = self.waiting.pop()[2]
            job = self.state.cluster.jobs.rows[key]
            if self._is_reclaimed(job):
                self.later.append(key)
                continue
            if self._may_resume(job):
                self._resume(job)
            if job.preempted_for:
                self._take(job)

    def resume_lent(self) -> None:
        """Resume jobs of queues beyond what these deserve, on slots that no other queue could use."""
        for key in self.later:
            job = self.state.cluster.jobs.rows[key]
            if not self._is_reclaimed(job) and self._may_resume(job):
                self._resume(job)
                self._take(job)

    def _resume(self, job: Job) -> None:
        self.resumes.append(job.key)
        if self.queue_shares is not None and job.preempted_for:
            self.queue_shares.resumed(job)

    def _is_reclaimed(self, job: Job) -> bool:
        """Whether the queue of a preempted job already has what it deserves without it, and nothing is lent to it."""
        queue_shares = self.queue_shares
        if queue_shares is None or not job.preempted_for or job.run is None:
            return False
        spec = self.state.cluster.specs.rows[job.spec]
        return not queue_shares.may_resume(spec, sum(part.slots for part in job.run.parts))

    def _take(self, job: Job) -> None:
        """Take its slots on the ledger, as far as they are free and no advance reservation has them."""
        parts, advance = preempt.parts_of(self.state.cluster, job.key), self.state.advance
        spec = self.state.cluster.specs.rows[job.spec]
        self.state.limits.shift_slots(spec, parts, 1)
        for part in parts:
            row = self.state.cache.by_name[part.host]
            host = self.state.ledger.host(part.host)
            room = host.free if advance is None else min(host.free, advance.reserved.room_now(spec, part.host))
            host.taken += max(0, min(part.slots, room))
            self.state.renew(row)

    def _may_resume(self, job: Job) -> bool:
        state = self.state
        spec = state.cluster.specs.rows[job.spec]
        reserved = state.advance.reserved if state.advance is not None else None
        if preempt.why_not_resumed(state.limits, job, reserved):
            return False
        queue = state.cluster.queue_conf.get(spec.queue)
        if queue is None:
            return True
        if self._closed(queue):
            return False
        rows = [state.cache.by_name[part.host] for part in preempt.parts_of(state.cluster, job.key)]
        if not state.cache.rules.stops:
            return True
        return all(self._is_fit(row, queue) for row in rows)

    def _is_fit(self, row: Row, queue: QueueConfig) -> bool:
        """Whether a suspended job may go on, as far as one host's windows and load go."""
        conf = self._host(row)
        if self._host_closed(conf):
            return False
        has_stop = bool(queue.thresholds.stop or conf.thresholds.stop or queue.stop_cond)
        if not has_stop or row.load is None:
            return True
        if self._overloaded(row, queue, conf):
            return False
        if queue.resume_cond:
            if not self._test(row, queue.resume_cond):
                return False
        elif self._beyond(row, (*queue.thresholds.sched, *conf.thresholds.sched)):
            return False
        if any(self._resumed_lately(key) for key in self._jobs_on(row)):
            self.state.wake(self.state.now + self._turn)
            return False
        return True

    def _resumed_lately(self, key: int) -> bool:
        """Whether a job was resumed less than SBD_SLEEP_TIME ago."""
        job = self.state.cluster.jobs.rows[key]
        if key in self.resumes:
            return True
        late = self.state.now < job.since + self._turn
        return job.state is JobState.RUN and job.run is not None and job.run.paused > 0 and late

    def _to_suspend(self) -> Iterator[tuple[int, str]]:
        """Running jobs to be suspended: (key, text that bjobs -s shows)."""
        state = self.state
        closed = {queue.name for queue in state.cluster.conf.queues if queue.run_window and self._closed(queue)}
        closed = {name for name in closed if state.cluster.use.queues[name][2]}
        rows, specs = state.cluster.jobs.rows, state.cluster.specs.rows
        stopped: set[int] = set()
        for key in sorted(state.cluster.started) if closed else ():
            if specs[rows[key].spec].queue in closed and _may_be_suspended(rows[key]):
                stopped.add(key)
                yield key, WINDOW
        for row in state.rows if state.cache.rules.host_stops else ():
            if self._is_calm(row):
                continue
            for key, why in self._overloaded_on(row):
                if key not in stopped:
                    stopped.add(key)
                    yield key, why

    def _is_calm(self, row: Row) -> bool:
        """Whether neither a window nor load can suspend a job on this host, whichever it has. As a rule all are, and one whose
        load is that of the cycle before is not looked at again."""
        rules = self.state.cache.rules
        if row.load is None or row.calm is row.load:
            return row.load is not None
        conf = self._host(row)
        if rules.stop_conds or conf.run_window or self._beyond(row, (*rules.stop_loads, *conf.thresholds.stop)):
            return False
        row.calm = row.load
        return True

    def _overloaded_on(self, row: Row) -> Iterator[tuple[int, str]]:
        """The jobs of one host to be suspended: all of them by its run window, one of them by load."""
        conf = self._host(row)
        keys = self._jobs_on(row)
        rows = self.state.cluster.jobs.rows
        if not keys:
            return
        if self._host_closed(conf):
            yield from ((key, HOST_WINDOW) for key in keys if _may_be_suspended(rows[key]))
            return
        if row.load is None or any(self._suspended_lately(key) for key in keys) or self._leaves_alone(row, keys):
            return
        for job, spec in self._lowest_first(keys):
            queue = self.state.cluster.queue_conf.get(spec.queue)
            why = self._overloaded(row, queue, conf) if queue is not None else ""
            if why and _may_be_suspended(job):
                yield job.key, why
                self.state.wake(self.state.now + self._turn)
                return

    def _leaves_alone(self, row: Row, keys: list[int]) -> bool:
        """Whether one job at most runs there, and nobody uses the host."""
        rows, ignore_it = self.state.cluster.jobs.rows, self.state.cluster.conf.params.lsb_stop_ignore_it
        idle = row.load is not None and row.load.get("it", 0.0) >= 1  # LSF's are whole minutes
        return idle and not ignore_it and sum(rows[key].state is JobState.RUN for key in keys) < 2

    def _suspended_lately(self, key: int) -> bool:
        job = self.state.cluster.jobs.rows[key]
        if job.state is not JobState.SSUSP or job.preempted_for or self.state.now >= job.since + self._turn:
            return False
        self.state.wake(job.since + self._turn)
        return True

    def _lowest_first(self, keys: list[int]) -> list[tuple[Job, Spec]]:
        rows, specs, queues = self.state.cluster.jobs.rows, self.state.cluster.specs.rows, self.state.cluster.queue_conf
        found = [(rows[key], specs[rows[key].spec]) for key in keys]

        def cost(pair: tuple[Job, Spec]) -> tuple[int, float, int]:
            queue = queues.get(pair[1].queue)
            run = pair[0].run
            return queue.priority if queue is not None else 0, -(run.dispatched if run is not None else 0), -pair[0].key

        return sorted(found, key=cost)

    def _jobs_on(self, row: Row) -> list[int]:
        use = self.state.cluster.use.hosts.get(row.name)
        return sorted(use.jobs) if use is not None else []

    def _host(self, row: Row) -> HostConfig:
        return self.state.cluster.host_conf.get(row.name) or HostConfig(name=row.name)

    def _closed(self, queue: QueueConfig) -> bool:
        """Whether the queue's run window is closed."""
        if not queue.run_window:
            return False
        self.state.wake_at_change(queue.run_window)
        return not self.state.cache.windows.is_open(queue.run_window, self.state.local)

    def _host_closed(self, conf: HostConfig) -> bool:
        return bool(conf.run_window) and not self.state.cache.windows.is_open(conf.run_window, self.state.local)

    def _overloaded(self, row: Row, queue: QueueConfig, conf: HostConfig) -> str:
        """Why a job of this queue must not run on this host now, as bjobs -s shows it; "": it may."""
        names = self._beyond(row, (*queue.thresholds.stop, *conf.thresholds.stop))
        if names:
            return "Host load exceeded threshold: " + " ".join(names)
        return STOP if queue.stop_cond and self._test(row, queue.stop_cond) else ""

    def _beyond(self, row: Row, thresholds: tuple[tuple[str, float], ...]) -> list[str]:
        found = []
        for name, most in thresholds:
            value = row.load.get(name) if row.load is not None else None
            if value is not None and (value > most if name in self.state.cache.increasing else value < most):
                found.append(name)
        return sorted(set(found), key=lambda name: LOAD_INDICES.index(name) if name in LOAD_INDICES else len(LOAD_INDICES))

    def _test(self, row: Row, text: str) -> bool:
        """Whether a condition of lsb.queues holds on a host; one that does not parse does not."""
        try:
            select = parse(text).select
        except ResReqError:
            return False
        return select is not None and compile_select(select)(read_values(row, self.state.cluster, self.state.soft))


def _may_be_suspended(job: Job) -> bool:
    run = job.run
    return (
        job.state is JobState.RUN
        and run is not None
        and not run.forced
        and run.verdict is None
        and not run.refused
        and not job.preempted_for_good
        and any(part.state not in OVER for part in run.parts)
        and not any(pending.kind is SignalKind.KILL for pending in run.pending_signals)
    )
