"""Jobs that would end too late: past their deadline (-t), or the end of their queue's run window (LSF's deadline constraint).

Rule: where run limits are longer on slower hosts, a class waits if it would end too late on the fastest host; else it starts on
none of those that are too slow.
"""

from __future__ import annotations

from lavad.core.site.pend_reason import PendReason
from lavad.sched.needs.eligibility import Eligibility
from lavad.sched.needs.needs import Need
from lavad.sched.state.cycle_state import CycleState


def why_late(state: CycleState, need: Need) -> int:
    """Why no job of a class would end in time if it started now; 0: some would, or nothing says how long they run."""
    limit = need.spec.limits.run
    return _why_late(state, need, 0 if limit is None else state.run_times.bounds(need.spec, limit)[0])


def _why_late(state: CycleState, need: Need, seconds: int) -> int:
    """Why a job that runs for so long would end too late; 0 seconds: nobody knows how long it does."""
    if need.spec.deadline and need.spec.deadline <= state.now + seconds:
        return PendReason.HOST_MISS_DEADLINE
    if not need.queue.run_window or not seconds or need.queue.ignore_deadline:
        return 0
    left = state.cache.windows.next_change(need.queue.run_window, state.local)
    return PendReason.QUE_WINDOW_WILL_CLOSE if left is not None and seconds > left else 0


def without_slow_hosts(state: CycleState, need: Need, eligible: Eligibility) -> Eligibility:
    """The same reasons, with one for each host on which a job of the class would end too late if it started now."""
    limit, run_times, spec = need.spec.limits.run, state.run_times, need.spec
    if run_times.even or limit is None or not _why_late(state, need, run_times.bounds(spec, limit)[1]):
        return eligible
    key = (need.eligible_key, need.queue.name, spec.deadline, limit, spec.run_host or spec.from_host)
    found = state.in_time.get(key)
    if found is None:
        codes = [
            int(code) or _why_late(state, need, run_times.on(spec, limit, row.name))
            for row, code in zip(state.rows, eligible.codes, strict=True)
        ]
        new = Eligibility(codes, eligible.depends_on_load, eligible.made_from, state.cache.cycle)
        if state.columns is not None:
            new.codes = new.array
        found = state.in_time[key] = new
    state.retry_blocked = True
    return found
