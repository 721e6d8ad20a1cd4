"""What an exit code means for a job: REQUEUE_EXIT_VALUES or ``-Q``, MAX_JOB_REQUEUE, SUCCESS_EXIT_VALUES."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from config.model.values import RequeueExit
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf


class ExitRule(msgspec.Struct, frozen=True, gc=False):
    """What holds for a job: its own option before its application profile, that before its queue."""

    requeue: RequeueExit = RequeueExit()
    most: int | None = None
    """MAX_JOB_REQUEUE."""
    success: tuple[int, ...] = ()

    def is_success(self, exit_code: int) -> bool:
        """Whether SUCCESS_EXIT_VALUES has this code."""
        return exit_code > 0 and exit_code in self.success


def exit_rule(conf: Conf, spec: Spec) -> ExitRule:
    """The rule of a job. What its profile says of requeueing is in the spec (``decide.submit``)."""
    queue = next((queue for queue in conf.queues if queue.name == spec.queue), None)
    profiles = [profile for profile in (conf.app_conf.get(spec.app), queue) if profile is not None]
    return ExitRule(
        requeue=_own(spec.requeue) if spec.requeue or queue is None else queue.requeue_exit_values,
        most=next((one.max_job_requeue for one in profiles if one.max_job_requeue is not None), None),
        success=next((one.success_exit_values for one in profiles if one.success_exit_values), ()),
    )


@lru_cache(maxsize=256)
def _own(text: str) -> RequeueExit:
    """The text of ``-Q``; none where a job of an older lava has one that is refused now."""
    try:
        return RequeueExit.parse(text)
    except ValueError:
        return RequeueExit()
