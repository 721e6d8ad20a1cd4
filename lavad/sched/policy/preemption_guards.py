"""Who is not preempted, and who may not preempt yet: NO_PREEMPT_…, MAX_JOB_PREEMPT, PREEMPT_DELAY, PREEMPT_JOBTYPE.

Rule: what time alone will change is noted as the cycle's time to wake.
"""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState


def is_guarded(state: CycleState, job: Job, spec: Spec) -> bool:
    """Whether a running job must be left alone for now."""
    run, conf = job.run, state.cluster.queue_conf.get(spec.queue)
    if run is None or conf is None:
        return True
    if spec.exclusive and not state.cluster.conf.params.preempt_exclusive:
        return True
    rules = conf.spared
    if rules.most is not None and job.preempted >= rules.most:
        return True
    if rules.interval and state.now < job.since + rules.interval:
        state.wake(job.since + rules.interval)
        return True
    ran = state.now - (run.started or run.dispatched) - run.paused
    limit = spec.limits.run
    if rules.ran and (rules.ran > 0 or limit is not None) and ran >= _seconds(rules.ran, limit):
        return True
    return bool(rules.ends) and limit is not None and limit - ran <= _seconds(rules.ends, limit)


def _seconds(rule: int, limit: int | None) -> float:
    """A time, or minus the percentage of the run limit."""
    return rule if rule > 0 else -rule / 100 * (limit or 0)


def is_too_early(state: CycleState, need: Need, key: int) -> bool:
    """Whether a waiting job may not preempt others, or not yet."""
    if need.spec.reservation:
        return False
    if need.spec.exclusive and not state.cluster.conf.params.preempt_exclusive:
        return True
    ready = state.cluster.get(key).submitted + need.queue.spared.delay
    if ready > state.now:
        state.wake(ready)
        return True
    return False
