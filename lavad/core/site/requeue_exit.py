"""What an exit code means for a job: REQUEUE_EXIT_VALUES or ``-Q``, MAX_JOB_REQUEUE, SUCCESS_EXIT_VALUES."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import RequeueExit
from lavad.core.job.spec import Spec

_REQUEUES = re.compile(r"[(,]requeues=([0-9]+)[,)]")


class ExitRule(msgspec.Struct, frozen=True, gc=False):
    """What holds for a job: its own option before its application profile, that before its queue."""

    requeue: RequeueExit = RequeueExit()
    most: int | None = None
    """MAX_JOB_REQUEUE, or less where ``-a "torchrun(requeues=N)"`` says so."""
    success: tuple[int, ...] = ()
    at_limit: bool = False
    """Whether it is requeued by its exit code if its run limit has ended it too (INTERRUPTIBLE_BACKFILL)."""

    def is_used_up(self, requeues: int) -> bool:
        """Whether a job that was requeued so often by its exit code is not again."""
        return self.most is not None and requeues >= self.most

    def is_success(self, exit_code: int) -> bool:
        """Whether SUCCESS_EXIT_VALUES has this code."""
        return exit_code > 0 and exit_code in self.success


def exit_rule(app: ApplicationConfig | None, queue: QueueConfig | None, spec: Spec) -> ExitRule:
    """The rule of a job of this profile and queue. What the profile says of requeueing is in the spec (``decide.submit``)."""
    most: int | None = None
    success: tuple[int, ...] = ()
    for profile in (app, queue):
        if profile is not None:
            most = profile.max_job_requeue if most is None else most
            success = success or profile.success_exit_values
    if own := _REQUEUES.search(spec.launch):
        most = int(own[1]) if most is None else min(most, int(own[1]))
    requeue = _own(spec.requeue) if spec.requeue or queue is None else queue.requeue_exit_values
    return ExitRule(requeue, most, success, queue is not None and queue.interruptible_backfill > 0)


@lru_cache(maxsize=256)
def _own(text: str) -> RequeueExit:
    """The text of ``-Q``; none where a job of an older lava has one that is refused now."""
    try:
        return RequeueExit.parse(text)
    except ValueError:
        return RequeueExit()
