"""NO_PREEMPT_INTERVAL, MAX_JOB_PREEMPT and their like: what holds for a job.

Rule: its application profile goes before its queue, and that before lsb.params (with which queues in force are filled).
"""

from __future__ import annotations

from typing import NamedTuple

from config.model.queue import JobProfile
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec


class PreemptRules(NamedTuple):
    """As in ``JobProfile``, seconds; None: nothing is said."""

    delay: int | None
    interval: int | None
    run_time: int | None
    finish_time: int | None
    times: int | None
    total_time: int | None


def preempt_rules(cluster: Cluster, spec: Spec) -> PreemptRules:
    """The rules of a job; its queue has to be there."""
    queue = _of(cluster.queue_conf[spec.queue])
    app = cluster.conf.app_conf.get(spec.app) if spec.app else None
    if app is None:
        return queue
    return PreemptRules(*(other if own is None else own for own, other in zip(_of(app), queue, strict=True)))


def _of(profile: JobProfile) -> PreemptRules:
    return PreemptRules(
        profile.preempt_delay,
        profile.no_preempt_interval,
        profile.no_preempt_run_time,
        profile.no_preempt_finish_time,
        profile.max_job_preempt,
        profile.max_total_time_preempt,
    )
