"""What the configuration says about the order of jobs: priorities, fair share, absolute priority (APS_PRIORITY), SCHEDULER.

Rule: jobs of one class are ordered as one, by the class's first job. A site's own policy module is asked through ``Scorer``,
which always answers: a module that fails gives every job the same score (``lavad.processes.site_policy``).
"""

from __future__ import annotations

from collections.abc import Callable

from config.model.values import Aps
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.rules.cpu_factors import RunTimes
from lavad.core.site.conf import Conf
from lavad.sched.order.fairshare import partition_policies, queue_policies

Stream = tuple[int, str, str]
"""(policy number, user, group) whose classes move in line together; ("", "") as user and group: each moves by itself."""


class Ranking:
    """The order of queues and users. ``growth``: user priority that a waiting job gains each second."""

    def __init__(self, conf: Conf) -> None:
        self.policies = queue_policies(conf)
        for policy in partition_policies(conf)[:1]:
            self.policies |= dict.fromkeys(policy.queues, policy)
        self.priorities = {queue.name: queue.priority for queue in conf.queues}
        self.aps: dict[str, tuple[int, Aps]] = {}
        """Queue to the number of the queue (group) that is ordered by absolute priority, and by what."""
        self.ranks = dict(self.priorities)
        for number, queue in enumerate(conf.queues):
            share = queue.share
            names = (queue.name, *(share.queues if share is not None else ()))
            if queue.aps_priority is not None:
                self.aps.update({name: (number, queue.aps_priority) for name in names if name not in self.aps})
            if share is not None and not share.by_queue:
                top = max(self.priorities.get(name, 0) for name in names)
                self.ranks.update(dict.fromkeys(names, top))
        steps, seconds = conf.params.job_priority_over_time or (0, 1)
        self.growth = steps / seconds
        self.policy_names = {queue.name: queue.scheduler for queue in conf.queues if queue.scheduler}
        self.preempts = any(queue.preemption for queue in conf.queues)

    def stream(self, spec: Spec) -> Stream | None:
        """The stream of a spec's jobs; None: they stand in the plain line."""
        aps = self.aps.get(spec.queue)
        if aps is not None:
            return aps[0], "", ""
        policy = self.policies.get(spec.queue)
        return None if policy is None else (policy.number, spec.user, spec.user_group)


Facts = dict[str, str | int | float | None]
"""What a site's module is told about a job."""
Scorer = Callable[[str, Facts], float]
"""(file of the site's module, ``facts`` of a job) -> score."""
NEVER = 1e18


def score(policy: str, spec: Spec, row: Job | Array, ask: Scorer | None, run_times: RunTimes) -> float:
    """The place of a job in its queue by SCHEDULER, the smallest first; 0.0: the policy has no preference."""
    if policy == "shortest":
        return NEVER if spec.expected is None else run_times.normalized(spec, spec.expected)
    if policy == "smallest":
        return float(spec.slots)
    if policy == "largest":
        return -float(spec.slots)
    if policy.startswith("/") and ask is not None:
        return ask(policy, facts(spec, row))
    return 0.0


def facts(spec: Spec, row: Job | Array) -> Facts:
    """What a site's module may decide by; times in seconds, ``mem_limit`` in KB."""
    return {
        "id": row.key & 0xFFFFFFFF if isinstance(row, Job) else row.job,
        "name": row.name,
        "submitted": row.submitted,
        "user": spec.user,
        "queue": spec.queue,
        "project": spec.project,
        "group": spec.group,
        "app": spec.app,
        "slots": spec.slots,
        "run_limit": spec.limits.run,
        "mem_limit": spec.limits.mem,
        "resreq": spec.resreq,
        "gpus": spec.gpu.num if spec.gpu is not None else 0,
        "priority": spec.priority,
    }
