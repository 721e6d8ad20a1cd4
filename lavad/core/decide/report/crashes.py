"""A checkpointable job whose process crashed: it goes on from its newest generation, but not for ever.

Rule: only a crash counts, a signal that nobody sent: an exit code is the program's own choice (REQUEUE_EXIT_VALUES is for those).
An attempt that makes no new generation before it crashes counts against the one that it began from; after LAVA_CHKPNT_TRIES of
them the job goes one generation back, and after as many from there it ends.
"""

from __future__ import annotations

import os
import signal

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.checkpoints import Checkpoints
from lavad.core.job.job import Attempt, End, Job
from lavad.core.job.roles import delay_of
from lavad.core.lang.states import TermReason
from lavad.core.site.pend_reason import PendReason

CRASHES = frozenset(
    {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGABRT,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSYS,
        signal.SIGTRAP,
        signal.SIGKILL,  # the kernel's, out of memory
    }
)


def after_crash(cluster: Cluster, job: Job, run: Attempt, now: float, end: End | None) -> ev.JobRequeued | None:
    """The event that starts the job again, None where it did not crash, has no generation, or has died too often."""
    crash, known = crash_of(run), job.checkpoints
    if not crash or known is None or run.checkpoint < 0:
        return None
    deaths = _deaths(known, run)
    tries = cluster.conf.params.lava_chkpnt_tries
    why, back_to = f"{crash}; it goes on from checkpoint generation {run.checkpoint}", None
    if deaths >= tries:
        back_to = _before(known, run.checkpoint)
        if back_to is None or known.went_back >= 0:
            return None
        why = f"{crash}, {deaths} times after checkpoint generation {run.checkpoint}: it goes back to generation {back_to}"
    return ev.JobRequeued(
        at=now,
        key=job.key,
        reason=PendReason.JOB_REQUEUED,
        why=why,
        end=end,
        not_before=now + delay_of(deaths - 1),
        deaths=deaths,
        back_to=back_to,
    )


def why_given_up(job: Job, run: Attempt) -> str:
    """What a job that died too often ends with; "" for others."""
    known = job.checkpoints
    if known is None or run.checkpoint < 0 or not (crash := crash_of(run)):
        return ""
    if known.went_back < 0 and not known.deaths:
        return ""
    before = f", after as many from generation {known.went_back}" if known.went_back >= 0 else ""
    return f"{crash}: it died {_deaths(known, run)} times after checkpoint generation {run.checkpoint}{before}"


def crash_of(run: Attempt) -> str:
    """The signal that its process, or one that a shell ran for it, died of by itself; "" if it did not."""
    verdict = run.verdict
    if verdict is None or verdict.lost or verdict.limit is not TermReason.NONE:
        return ""
    code = os.waitstatus_to_exitcode(verdict.status)
    number = -code if code < 0 else code - 128
    return f"killed by {signal.Signals(number).name}" if number in CRASHES and number != run.signalled else ""


def _deaths(known: Checkpoints, run: Attempt) -> int:
    """In a row from one generation, with this one: an attempt that made one has got on."""
    return 1 if known.newest(run.number) is not None else known.deaths + 1


def _before(known: Checkpoints, generation: int) -> int | None:
    return max((one.number for one in known.generations if one.number < generation), default=None)
