"""The scheduler's process: applies committed events, runs a cycle when something has changed, sends the plan to the master.

Rule: one plan at a time. The next cycle waits until the master has processed it, so that no job is planned twice.
"""

from __future__ import annotations

import sys
import time
from typing import NoReturn

from msgspec.structs import replace

from lavad.collector import look_rarely
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import ReservedStart
from lavad.core.site.conf import Conf
from lavad.processes.recorder import Recorder
from lavad.processes.site_policy import SitePolicies
from lavad.replica.replica import Ended, Replica
from lavad.replica.spawn import child_socket, set_title
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from proto.daemon.large_pages import gather_soon

COALESCE = 0.0015
"""Seconds to wait for further changes before a cycle, where they come one right after the other."""
APART = 0.005
"""Seconds after which a change is not of those before it: a job that comes by itself is planned at once."""
IDLE = 5.0
"""Seconds to wait for changes at most."""


def local_time(now: float) -> tuple[int, int]:
    """Weekday (0 is Sunday) and second of the day, local time."""
    at = time.localtime(now)
    return (at.tm_wday + 1) % 7, at.tm_hour * 3600 + at.tm_min * 60 + at.tm_sec


def run(replica: Replica) -> NoReturn:
    """Schedule until the master is gone."""
    cache = SchedulerCache(chunks=True)
    policies = SitePolicies()
    cache.scorer = policies.score
    conf: Conf | None = None
    recorder = Recorder()
    replica.noted = recorder.note
    waiting_for = -1
    wake_at = 0.0
    sent: tuple[dict[int, int], dict[int, ReservedStart]] | None = None
    while True:
        timeout = IDLE if not wake_at else min(IDLE, max(0.0, wake_at - time.time()))
        began = time.monotonic()
        came = replica.wait(timeout)
        pause = COALESCE if time.monotonic() - began < APART else 0.0
        if waiting_for >= 0:
            if replica.plan_done < waiting_for:
                continue
            waiting_for = -1
            recorder.done(replica.plan_kept)
        while came and replica.wait(0.0 if replica.awaited else pause):
            pass
        now = time.time()
        if not replica.changed and not (wake_at and now >= wake_at):
            continue
        awaited, replica.awaited = replica.awaited, False
        replica.changed = False
        local = local_time(now)
        if replica.cluster.conf is not conf:
            conf = replica.cluster.conf
            policies.forget()
        before = time.perf_counter()
        plan = schedule(replica.cluster, replica.soft, now, local, cache)
        plan = replace(plan, took=time.perf_counter() - before)
        wake_at = plan.wake_at
        if awaited or plan.decides or plan.why or (plan.why_job, plan.promises) != sent:
            sent = plan.why_job, plan.promises
            replica.send(_recorded(recorder, replica, plan, now, local))
            waiting_for = plan.version if plan.decides else -1


def _recorded(recorder: Recorder, replica: Replica, plan: Plan, now: float, local: Local) -> Plan:
    """The plan with its recorded inputs, if recording is on."""
    if replica.cluster.conf.params.lava_record_days <= 0:
        recorder.stop()
        return plan
    return replace(plan, recorded=recorder.record(plan, replica.soft, now, local)) if plan.decides else plan


def main() -> int:
    """Entry point: the socket to the master is file descriptor 3."""
    set_title("lava-sched")
    look_rarely()
    gather_soon()
    replica = Replica(child_socket())
    try:
        run(replica)
    except (Ended, KeyboardInterrupt):
        return 0


if __name__ == "__main__":
    sys.exit(main())
