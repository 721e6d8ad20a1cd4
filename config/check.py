"""What one entry says against another: queues, limits, guarantees, and the shares of queues and groups."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from config.model.cluster import GroupConfig, HostConfig, Limit
from config.model.params import KILL_TIME, Params
from config.model.problems import Place, Problems
from config.model.queue import QueueConfig
from config.model.values import SHARE_KEYWORDS, Shares
from config.text.units import overlap
from config.values.names import base_host

PlaceOf = Callable[[str, str], Place]
"""Queue and parameter to where it stands."""


def check_queues(queues: Mapping[str, QueueConfig], hosts: Sequence[HostConfig], place: PlaceOf, problems: Problems) -> None:
    """Each queue by itself, preemption between two, and all guarantees together."""
    for name, queue in queues.items():
        for parameter, text in _contradictions(queue, queues):
            problems.error(place(name, parameter), f"queue {name}: {text}")
    _check_guarantees(queues, hosts, place, problems)


def check_leases(queues: Mapping[str, QueueConfig], params: Params, place: PlaceOf, problems: Problems) -> None:
    """A queue's own lease and margin, as those of lsf.conf."""
    for name, queue in queues.items():
        if queue.lease is not None and queue.lease < params.lava_host_timeout:
            text = f"LEASE {queue.lease:g} s is shorter than LAVA_HOST_TIMEOUT {params.lava_host_timeout} s"
            problems.error(place(name, "LEASE"), f"queue {name}: {text}")
        if queue.lease_margin is not None and queue.lease_margin < params.least_margin:
            text = f"LEASE_MARGIN {queue.lease_margin:g} s is too short: {why_least_margin(params)}"
            problems.error(place(name, "LEASE_MARGIN"), f"queue {name}: {text}")


def why_least_margin(params: Params) -> str:
    """What a margin must cover."""
    return (
        f"with LAVA_HOST_TIMEOUT {params.lava_host_timeout} s it is at least {params.least_margin:g} s, the masters' own lease "
        f"({params.masters_lease:g} s) and the time in which a job is ended ({KILL_TIME:g} s)"
    )


def _contradictions(queue: QueueConfig, queues: Mapping[str, QueueConfig]) -> Iterable[tuple[str, str]]:
    bounds = {"QJOB_LIMIT": queue.qjob_limit, "UJOB_LIMIT": queue.ujob_limit, "CAPABILITY": queue.capability}
    least = queue.tasklimit.minimum
    for parameter, most in bounds.items():
        if most is not None and 0 < most < least:
            yield parameter, f"{parameter} {most} is less than the {least} slots that TASKLIMIT asks of each job"
        if most is not None and parameter != "UJOB_LIMIT" and queue.guarantee > most:
            yield "GUARANTEE", f"GUARANTEE {queue.guarantee} is more than {parameter} {most}"
    if queue.gpu_capability is not None and queue.gpu_guarantee > queue.gpu_capability:
        yield "GUARANTEE", f"GUARANTEE gpus:{queue.gpu_guarantee} is more than CAPABILITY gpus:{queue.gpu_capability}"
    if queue.slot_reserve and queue.resource_reserve:
        yield "SLOT_RESERVE", "SLOT_RESERVE and RESOURCE_RESERVE exclude each other"
    yield from _against_policy(queue)
    if not queue.gang and (queue.slot_reserve or queue.resource_reserve):
        yield "GANG", "GANG=N and SLOT_RESERVE or RESOURCE_RESERVE exclude each other"
    if queue.run_window and queue.dispatch_window and not overlap(queue.run_window, queue.dispatch_window):
        yield "DISPATCH_WINDOW", "DISPATCH_WINDOW is never open together with RUN_WINDOW: no job could start"
    for word, _ in queue.preemption.preempts:
        other = queues.get(base_host(word))
        if other is not None and other.priority >= queue.priority:
            yield "PREEMPTION", f"PREEMPTION: queue {other.name} has no lower PRIORITY, and is never preempted"
    for word, _ in queue.preemption.preempted_by:
        other = queues.get(base_host(word))
        if other is not None and other.priority <= queue.priority:
            yield "PREEMPTION", f"PREEMPTION: queue {other.name} has no higher PRIORITY, and never preempts"


def _against_policy(queue: QueueConfig) -> Iterable[tuple[str, str]]:
    if queue.scheduler in ("fcfs", "shortest", "smallest", "largest") and (queue.fairshare or queue.round_robin_policy):
        yield "SCHEDULER", f"SCHEDULER={queue.scheduler} and FAIRSHARE or ROUND_ROBIN_POLICY exclude each other"
    if queue.interruptible_backfill and not (queue.backfill and queue.limits.run is not None):
        yield "INTERRUPTIBLE_BACKFILL", "INTERRUPTIBLE_BACKFILL needs BACKFILL=Y and RUNLIMIT"
    if queue.scheduler == "gang" and not queue.gang:
        yield "SCHEDULER", "SCHEDULER=gang and GANG=N exclude each other"


def _check_guarantees(queues: Mapping[str, QueueConfig], hosts: Sequence[HostConfig], place: PlaceOf, problems: Problems) -> None:
    """All guarantees together must fit into the slots of the hosts, where the files tell how many there are."""
    batch = [host for host in hosts if host.batch]
    slots = [host.slots for host in batch]
    if not batch or any(most is None or most < 0 for most in slots):
        return
    total = sum(most for most in slots if most is not None)
    kept = 0
    for name, queue in queues.items():
        kept += queue.guarantee
        if queue.guarantee and kept > total:
            text = f"queue {name}: GUARANTEE {queue.guarantee}: with those before it {kept} slots of {total} are guaranteed"
            problems.error(place(name, "GUARANTEE"), text)
            return


def check_limits(
    limits: Iterable[tuple[Limit, Place]],
    queues: Mapping[str, QueueConfig],
    known_hosts: frozenset[str],
    groups: Mapping[str, GroupConfig],
    counted: Collection[str],
    problems: Problems,
) -> None:
    """Names of queues, hosts and resources (``counted``: those that jobs can reserve), and users counted in and out at once."""
    for limit, place in limits:
        owner = f"limit {limit.name[:200]}"
        for name in limit.queues:
            if name.lstrip("~") not in queues and name != "all":
                problems.error(place, f"{owner}: QUEUES: no queue {name[:200]} in lsb.queues")
        for name in limit.hosts if known_hosts else ():
            if name.lstrip("~") not in known_hosts and name != "all":
                problems.error(place, f"{owner}: HOSTS: unknown host or host group {name[:200]}")
        for name, _ in limit.resources:
            if name not in counted:
                problems.error(place, f"{owner}: RESOURCE: {name[:200]} cannot be limited: no job reserves it")
        words = set(limit.users)
        both = sorted(word for word in words if "~" + word in words)
        if both:
            problems.error(place, f"{owner}: USERS: {both[0][:200]} is counted in and out")
        empty = sorted(word for word in words if word in groups and not groups[word].members)
        if empty:
            problems.warn(place, f"{owner}: USERS: user group {empty[0][:200]} has no members")


def check_shares(queues: Mapping[str, QueueConfig], groups: Collection[str], place: PlaceOf, problems: Problems) -> None:
    """Names of queues and user groups, one policy a queue, and policies that exclude each other."""
    ruled: dict[str, str] = {}
    for name, queue in queues.items():
        for parameter, others in (("FAIRSHARE_QUEUES", queue.fairshare_queues), ("QUEUE_GROUP", queue.queue_group)):
            for other in others:
                if other not in queues:
                    problems.error(place(name, parameter), f"queue {name}: {parameter}: no queue {other[:200]}")
                elif other != name and (queues[other].fairshare or queues[other].round_robin_policy):
                    problems.error(place(name, parameter), f"queue {name}: {parameter}: {other} has a policy of its own")
                elif ruled.setdefault(other, name) != name:
                    problems.error(place(name, parameter), f"queue {name}: {other} follows queue {ruled[other]} already")
        shared = queue.fairshare or queue.round_robin_policy or queue.dominant_resources
        if queue.fairshare_queues and not shared:
            problems.error(place(name, "FAIRSHARE_QUEUES"), f"queue {name}: FAIRSHARE_QUEUES needs FAIRSHARE")
        if queue.round_robin_policy and queue.fairshare:
            text = f"queue {name}: ROUND_ROBIN_POLICY and FAIRSHARE exclude each other"
            problems.error(place(name, "ROUND_ROBIN_POLICY"), text)
        if queue.aps_priority is not None and queue.fairshare_queues:
            text = f"queue {name}: APS_PRIORITY and FAIRSHARE_QUEUES exclude each other"
            problems.error(place(name, "APS_PRIORITY"), text)
        check_share_names(queue.fairshare, groups, place(name, "FAIRSHARE"), f"queue {name}: FAIRSHARE", problems)


def check_share_names(shares: Shares, groups: Collection[str], place: Place, owner: str, problems: Problems) -> None:
    """Each name has shares once, and `name@` is a user group."""
    seen: set[str] = set()
    for name, _ in shares:
        if name in seen:
            problems.error(place, f"{owner}: {name[:200]} has shares twice")
        if name.endswith("@") and name[:-1] not in groups:
            problems.warn(place, f"{owner}: {name[:200]}: there is no user group of that name: these shares have no effect")
        seen.add(name)


def check_groups(groups: Mapping[str, GroupConfig], places: Mapping[str, Place], problems: Problems) -> None:
    """Shares in a group go to its members."""
    for name, group in groups.items():
        place = places[name]
        check_share_names(group.shares, groups, place, f"user group {name}: USER_SHARES", problems)
        open_ended = "all" in group.members or any(member in groups for member in group.members)
        for member, _ in group.shares:
            bare = member.rstrip("@/")
            if bare not in SHARE_KEYWORDS and bare not in group.members and not open_ended:
                problems.warn(place, f"user group {name}: USER_SHARES: {member[:200]} is no member")
