"""The queue of a job: the first of the named queues that accepts it, and the checks against its limits."""

from __future__ import annotations

from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import Interactive
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.containers import check_container
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit.limits import check_most, check_size, with_defaults, without
from lavad.core.decide.submit.resources import base_host
from lavad.core.decide.submit.slots import check_configured, check_queue_requirement, check_reserved
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.site.rights import DENIED, has_share, may_use_queue, why_not_admin

KEYWORDS = frozenset(("all", "others", "allremote"))
"""Keywords of ``-m`` beside hosts and host groups."""

NO_USER_SLOTS = "Queue does not have enough per-user job slots"


def choose_queue(cluster: Cluster, names: tuple[str, ...], draft: JobDraft, caller: Caller) -> QueueConfig:
    """The first of the named (else default) queues that accepts the job; unknown ones are skipped if there are others."""
    asked = names or cluster.conf.params.default_queue
    refusal = Refused("No such queue")
    for name in asked:
        queue = cluster.queue_conf.get(name)
        try:
            if queue is None:
                raise Refused(f"{name}: No such queue")
            _check_queue(cluster, queue, draft, caller)
        except Refused as why:
            refusal = why
            continue
        return queue
    raise refusal


def check_exclusive(draft: JobDraft, queue: QueueConfig) -> None:
    """Whether the queue lets a job have hosts for itself, and the job asks for them as it should; raises Refused."""
    if draft.spec.exclusive and not queue.exclusive:
        raise Refused(f"{queue.name}: Queue does not accept EXCLUSIVE jobs")
    if "excl" in draft.spec.resreq and not draft.spec.exclusive and resreq.is_exclusive(resreq.parse(draft.spec.resreq)):
        raise Refused("Bad resource requirement: cu[excl] is for exclusive jobs (-x)")


def _check_queue(cluster: Cluster, queue: QueueConfig, draft: JobDraft, caller: Caller) -> None:
    if not cluster.queue_state(queue.name).open:
        raise Refused(f"{queue.name}: Queue has been closed")
    owner = draft.spec.user
    if not may_use_queue(cluster.conf, queue, owner) and (why := why_not_admin(cluster.conf, caller)):
        raise Refused(f"{queue.name}: User cannot use the queue{why.removeprefix(DENIED)}")
    if not has_share(cluster.conf, queue.name, owner, draft.spec.user_group):
        raise Refused(f"{queue.name}: User cannot use the queue: {owner} has no share of it")
    check_exclusive(draft, queue)
    if draft.spec.interactive and queue.interactive is Interactive.NO:
        raise Refused("Queue does not accept interactive jobs")
    if not draft.spec.interactive and queue.interactive is Interactive.ONLY:
        raise Refused("Queue only accepts interactive jobs")


def leave_queue(cluster: Cluster, draft: JobDraft, new: str) -> None:
    """Limits and estimate of a job that waits once it is in another queue: those of its queue give way to the new one's."""
    spec, former = draft.spec, cluster.queue_conf.get(draft.spec.queue)
    if former is not None and spec.queue != new:
        own = without(spec.limits, former.defaults, former.limits)
        spec = replace(spec, limits=own, estimate=0 if spec.estimate == former.estimated_runtime else spec.estimate)
    draft.spec = replace(spec, limits=with_defaults(spec.limits, cluster.queue_conf[new].defaults))


def check_against_queue(draft: JobDraft, queue: QueueConfig) -> None:
    """The queue's own limits on what a job may ask for; the job has those that it does not name.

    With INTERRUPTIBLE_BACKFILL a job has the queue's run limit, whatever it asks for (LSF).
    """
    if queue.interruptible_backfill:
        draft.set_limit(run=queue.limits.run)
        draft.set_spec(run_host=queue.default_host_spec)
    check_most(draft.spec.limits, queue.limits, "queue's hard limit(s)")
    draft.spec = replace(draft.spec, limits=with_defaults(draft.spec.limits, queue.limits))
    check_size(draft.spec, queue)
    for most in (queue.qjob_limit, queue.ujob_limit):
        if most is not None and draft.spec.slots > most:
            raise Refused(NO_USER_SLOTS)
    check_container(draft.conf.app_conf.get(draft.spec.app), queue, draft.text)
    check_configured(f"RES_REQ of queue {queue.name}", queue.res_req)
    check_queue_requirement(draft.spec, queue.res_req)
    check_reserved(draft.spec, queue.resrsv_limit, draft.ran is not None)
    if draft.spec.hosts and queue.hosts != ("all",):
        _check_queue_hosts(draft, queue)


def _check_queue_hosts(draft: JobDraft, queue: QueueConfig) -> None:
    """Of each host or group of ``-m`` the queue must have a host."""
    groups, known = draft.conf.groups_of_hosts, draft.known_hosts
    used = groups.meant(queue.hosts)
    for word in draft.spec.hosts:
        name = base_host(word)
        if word.startswith("~") or name in KEYWORDS:
            continue
        hosts = groups.hosts(name)
        if "all" not in hosts and not any(host in known and used.level(host) is not None for host in hosts):
            raise Refused(f"{name}: Host or host group is not used by the queue")
