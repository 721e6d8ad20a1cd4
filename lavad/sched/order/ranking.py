"""What the configuration says about the order of queues and users: who is served before whom, and what moves that order."""

from __future__ import annotations

from lavad.core.job.spec import Spec
from lavad.core.site.conf import ApsConf, Conf
from lavad.sched.order.fairshare import partition_policies, queue_policies

Stream = tuple[int, str, str]
"""Number of a policy, user and group: classes whose places move together; two times "" where they move one by one."""


class Ranking:
    """What the configuration says about the order of queues and users. ``growth``: user priority won a second."""

    def __init__(self, conf: Conf) -> None:
        self.policies = queue_policies(conf)
        for policy in partition_policies(conf)[:1]:
            self.policies |= dict.fromkeys(policy.queues, policy)
        self.priorities = {queue.name: queue.priority for queue in conf.queues}
        self.aps: dict[str, tuple[int, ApsConf]] = {}
        """Queue to the number of the queue (group) that is ordered by absolute priority, and by what."""
        self.ranks = dict(self.priorities)
        for number, queue in enumerate(conf.queues):
            share = queue.share
            names = (queue.name, *(share.queues if share is not None else ()))
            if queue.aps is not None:
                self.aps.update({name: (number, queue.aps) for name in names if name not in self.aps})
            if share is not None and not share.by_queue:
                top = max(self.priorities.get(name, 0) for name in names)
                self.ranks.update(dict.fromkeys(names, top))
        steps, seconds = conf.params.priority_growth or (0, 1)
        self.growth = steps / seconds
        self.policy_names = {queue.name: queue.scheduler for queue in conf.queues if queue.scheduler}
        self.preempts = any(queue.preemption for queue in conf.queues)

    def stream(self, spec: Spec) -> Stream | None:
        """The stream of a spec's jobs, None: the plain line."""
        aps = self.aps.get(spec.queue)
        if aps is not None:
            return aps[0], "", ""
        policy = self.policies.get(spec.queue)
        return None if policy is None else (policy.number, spec.user, spec.user_group)
