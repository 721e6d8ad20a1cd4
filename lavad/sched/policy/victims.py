"""Whose slots a job may take by preemption, and in which order: PREEMPTION of the queues, what queues deserve, reservations.

Running jobs are guarded by NO_PREEMPT_RUN_TIME, NO_PREEMPT_FINISH_TIME, NO_PREEMPT_INTERVAL, MAX_JOB_PREEMPT,
MAX_TOTAL_TIME_PREEMPT (lsb.params, lsb.queues, lsb.applications) and PREEMPT_JOBTYPE.

Rule: what time alone will change is noted as the cycle's time to wake.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.model.cluster import GPU_RESOURCES
from config.model.queue import QueueConfig
from config.model.values import JobAction, TerminateWhen
from lavad.core.decide.placement.preempt import is_giving_up
from lavad.core.job.job import Job, Placed
from lavad.core.job.resize import by_hosts
from lavad.core.job.resize import surplus as beyond_minimum
from lavad.core.job.run_time import limit_of
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState, PreemptionAction
from lavad.core.plan.plan import Preemption
from lavad.core.rules.ownership import GPUS
from lavad.core.rules.per_slot import taken
from lavad.sched.needs.needs import Need
from lavad.sched.policy.preempt_rules import preempt_rules
from lavad.sched.policy.queue_shares import QueueShares, Share, size_of
from lavad.sched.state.cycle_state import CycleState

GRACE = 300.0
"""Seconds for which a job that was resumed is not preempted again."""


def how_of(queue: QueueConfig | None, spec: Spec) -> PreemptionAction:
    """How a job of this queue is preempted: JOB_CONTROLS=SUSPEND[…] and TERMINATE_WHEN=PREEMPT decide."""
    if queue is None:
        return PreemptionAction.SUSPEND
    if TerminateWhen.PREEMPT in queue.terminate_when:
        return PreemptionAction.KILL
    what = queue.control(JobAction.SUSPEND)
    if "brequeue" in what:
        return PreemptionAction.REQUEUE
    if ("CHKPNT" in what or "bmig" in what) and (spec.checkpoint is not None or spec.rerunnable):
        return PreemptionAction.MIGRATE
    return PreemptionAction.SUSPEND


def how_freeing(queue: QueueConfig | None, spec: Spec) -> PreemptionAction | None:
    """How a job gives up all that it has, GPUs and memory too, which suspension does not free.

    It is checkpointed or started again elsewhere (LSF asks for RERUNNABLE too), unless its queue says brequeue or
    TERMINATE_WHEN=PREEMPT. None: it would be lost.
    """
    how = how_of(queue, spec)
    if how is not PreemptionAction.SUSPEND:
        return how
    return PreemptionAction.MIGRATE if spec.checkpoint is not None or spec.rerunnable else None


class Victims:
    """The jobs that each queue, or advance reservation, may preempt in one cycle, the cheapest first."""

    def __init__(self, state: CycleState, queue_shares: QueueShares | None) -> None:
        self.state = state
        self.queue_shares = queue_shares
        self._lowest: dict[tuple[str, bool], list[Preemption]] = {}
        self._surplus: dict[tuple[str, bool, bool], list[tuple[Preemption, Share]]] = {}

    def of(self, need: Need, frees: bool) -> Iterator[tuple[Preemption, Share | None]]:
        """All that jobs of this class may preempt, the cheapest first.

        With the share of which a victim's queue must have a surplus. ``frees``: as ``how_freeing``, where that can be.
        """
        queue = need.spec.queue
        if need.spec.reservation:
            yield from ((one, None) for one in self._outside(need.spec.reservation, frees))
            return
        if not frees or self._is_preemptable(need):
            if (queue, frees) not in self._lowest:
                self._lowest[queue, frees] = self._lower(queue, frees)
            yield from ((one, None) for one in self._lowest[queue, frees])
        if self.queue_shares is not None and self.queue_shares.may_reclaim(need):
            place = (queue, frees, need.spec.gpu is not None)
            if place not in self._surplus:
                self._surplus[place] = self._reclaimable(self.queue_shares.shares, *place)
            yield from self._surplus[place]

    def may_free(self, need: Need) -> bool:
        """Whether jobs may be made to give up all that they have: by PREEMPTABLE_RESOURCES, what queues deserve, reservations."""
        if need.spec.gpu is None and not need.reserves and need.affinity is None:
            return False  # it needs slots alone, and suspension frees these
        if need.spec.reservation:
            return True
        return self._is_preemptable(need) or (self.queue_shares is not None and self.queue_shares.may_reclaim(need))

    def _is_preemptable(self, need: Need) -> bool:
        """Whether PREEMPTABLE_RESOURCES names anything that this class reserves."""
        named = self.state.cluster.conf.params.preemptable_resources
        gpus = GPU_RESOURCES if need.spec.gpu is not None else ()
        return bool(named) and any(name in named for name in (*gpus, *need.reserves))

    def _lower(self, queue: str, frees: bool) -> list[Preemption]:
        """Of preemptable queues: by preference, priority of the queue, run time (the newest first) and slots."""
        state = self.state
        levels = dict(state.cache.rules.preempts.get(queue, ()))
        costs = []
        for job, spec in self._started():
            run = job.run
            if spec.queue not in levels or run is None or not self._may_be_preempted(job, spec, queue):
                continue
            conf = state.cluster.queue_conf[spec.queue]
            ran = state.now - (run.started or run.dispatched)
            place = (-levels[spec.queue], conf.priority)
            for at, parts in enumerate(self._surplus_parts(job, spec)):
                costs.append(((*place, 0, ran, at, job.key), Preemption(job.key, run.uid, PreemptionAction.SHRINK, 0, (parts,))))
            slots = sum(part.slots for part in run.parts)
            how = (how_freeing(conf, spec) if frees else None) or how_of(conf, spec)
            costs.append(((*place, 1, ran, slots, job.key), Preemption(job.key, run.uid, how, 0)))
        costs.sort(key=lambda cost: cost[0])
        return [one for _, one in costs]

    def _reclaimable(self, shares: list[Share], queue: str, frees: bool, gpus: bool) -> list[tuple[Preemption, Share]]:
        """Of queues that have more than they deserve: the largest surplus first, then the newest and smallest jobs.

        What frees no more than is missing comes before a job that is larger than its queue's surplus.
        """
        state = self.state
        levels = dict(state.cache.rules.preempts.get(queue, ()))
        costs = []
        for share in shares:
            of_gpus = share.what is GPUS
            if of_gpus and not (frees and gpus):
                continue
            for job, spec in self._started():
                run, surplus = job.run, share.surplus(spec.queue)
                if spec.queue == queue or spec.queue in levels or not surplus or run is None:
                    continue
                conf, size = state.cluster.queue_conf.get(spec.queue), size_of(share, job)
                how = how_freeing(conf, spec) if frees else how_of(conf, spec)
                if not size or how is None or not self._may_be_preempted(job, spec, queue):
                    continue
                ran = state.now - (run.started or run.dispatched)
                one = Preemption(job.key, run.uid, how, 0)
                costs.append(((not of_gpus, size > surplus, -surplus, spec.queue, ran, size, job.key), one, share))
        costs.sort(key=lambda cost: cost[0])
        found: dict[int, tuple[Preemption, Share]] = {}
        for _, one, share in costs:
            found.setdefault(one.key, (one, share))
        return list(found.values())

    def _outside(self, name: str, frees: bool) -> list[Preemption]:
        """On the hosts of an advance reservation: LSF suspends jobs that run in none for those in it, the newest first."""
        state = self.state
        hosts = state.cluster.use.hosts
        keys = {key for host, _ in state.cluster.reservations.rows[name].hosts if host in hosts for key in hosts[host].jobs}
        jobs = [state.cluster.jobs.rows[key] for key in sorted(keys, reverse=True)]
        found = []
        for job in jobs:
            spec = state.cluster.specs.rows[job.spec]
            if not spec.reservation and job.run is not None and self._is_running(job):
                how = how_freeing(state.cluster.queue_conf.get(spec.queue), spec) if frees else None
                found.append(Preemption(job.key, job.run.uid, how or PreemptionAction.SUSPEND, 0))
        return found

    def _started(self) -> Iterator[tuple[Job, Spec]]:
        cluster = self.state.cluster
        for key in cluster.started:
            job = cluster.jobs.rows[key]
            yield job, cluster.specs.rows[job.spec]

    def _surplus_parts(self, job: Job, spec: Spec) -> list[Placed]:
        """What a resizable job has beyond its minimum, the newest first; to give it up is cheaper than to be stopped."""
        run = job.run
        if run is None or not run.elastic:
            return []
        found = beyond_minimum(run, spec.slots, by_hosts(spec))
        return [taken(part, slots, spec, self.state.cluster.conf) for part, slots in found]

    def _may_be_preempted(self, job: Job, spec: Spec, queue: str) -> bool:
        """Whether jobs of a queue may preempt a job now."""
        pools, goals = self.state.pools, self.state.cache.goals
        kept = (pools is not None and pools.guards(queue, spec)) or (goals is not None and bool(goals.active(spec)))
        return not kept and self._is_running(job) and not is_guarded(self.state, job, spec)

    def _is_running(self, job: Job) -> bool:
        """Whether a job runs, is not about to end or to give up its slots, and was not resumed only just now.

        The slot of a chunk is not its own to give up.
        """
        state = self.state
        run = job.run
        if job.state is not JobState.RUN or job.preempted_for or run is None or run.verdict is not None or run.refused:
            return False
        if run.is_ending or run.chunk or is_giving_up(run):
            return False
        if run.paused and state.now < job.since + GRACE:
            state.wake(job.since + GRACE)
            return False
        return True


def is_guarded(state: CycleState, job: Job, spec: Spec) -> bool:
    """Whether the configuration forbids that a running job is preempted now."""
    run, conf = job.run, state.cluster.queue_conf.get(spec.queue)
    if run is None or conf is None:
        return True
    if spec.exclusive and not state.cluster.conf.params.preempt_exclusive:
        return True
    rules = preempt_rules(state.cluster, spec)
    if rules.times is not None and job.preempted >= rules.times:
        return True
    if rules.total_time is not None and job.preempted_time >= rules.total_time:
        return True
    if rules.interval and state.now < job.since + rules.interval:
        state.wake(job.since + rules.interval)
        return True
    ran = state.now - (run.started or run.dispatched) - run.paused
    limit = limit_of(job, spec)
    if limit is not None:
        limit = state.run_times.longest(spec, limit, (part.host for part in run.parts))
    most, last = rules.run_time, rules.finish_time
    if most and (most > 0 or limit is not None) and ran >= _seconds(most, limit):
        return True
    return bool(last) and limit is not None and limit - ran <= _seconds(last or 0, limit)


def _seconds(rule: int, limit: int | None) -> float:
    """A rule in seconds; a negative one is minus the percentage of the run limit."""
    return rule if rule > 0 else -rule / 100 * (limit or 0)
