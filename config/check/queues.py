"""What one queue, limit or guarantee says against another, so that jobs could never start or a promise never be kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from config.model.cluster import GroupConfig, HostConfig, Limit
from config.model.problems import Place, Problems
from config.model.queue import QueueConfig
from config.text.units import week_spans
from config.values.names import base_host

PlaceOf = Callable[[str, str], Place]
"""Queue and parameter to where it stands."""


def check_queues(queues: Mapping[str, QueueConfig], hosts: Sequence[HostConfig], place: PlaceOf, problems: Problems) -> None:
    """Each queue by itself, preemption between two, and all guarantees together."""
    for name, queue in queues.items():
        for parameter, text in _contradictions(queue, queues):
            problems.error(place(name, parameter), f"queue {name}: {text}")
    _check_guarantees(queues, hosts, place, problems)


def _contradictions(queue: QueueConfig, queues: Mapping[str, QueueConfig]) -> Iterable[tuple[str, str]]:
    bounds = {"QJOB_LIMIT": queue.qjob_limit, "UJOB_LIMIT": queue.ujob_limit, "CAPABILITY": queue.capability}
    least = queue.tasklimit.minimum
    for parameter, most in bounds.items():
        if most is not None and 0 < most < least:
            yield parameter, f"{parameter} {most} is less than the {least} slots that TASKLIMIT asks of each job"
        if most is not None and parameter != "UJOB_LIMIT" and queue.guarantee > most:
            yield "GUARANTEE", f"GUARANTEE {queue.guarantee} is more than {parameter} {most}"
    if queue.slot_reserve and queue.resource_reserve:
        yield "SLOT_RESERVE", "SLOT_RESERVE and RESOURCE_RESERVE exclude each other"
    yield from _against_policy(queue)
    if not queue.gang and (queue.slot_reserve or queue.resource_reserve):
        yield "GANG", "GANG=N and SLOT_RESERVE or RESOURCE_RESERVE exclude each other"
    if queue.run_window and queue.dispatch_window and not _overlap(queue.run_window, queue.dispatch_window):
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
    if queue.scheduler == "gang" and not queue.gang:
        yield "SCHEDULER", "SCHEDULER=gang and GANG=N exclude each other"


def _overlap(one: str, other: str) -> bool:
    spans = week_spans(tuple(one.split()))
    return any(first < last2 and first2 < last for first, last in spans for first2, last2 in week_spans(tuple(other.split())))


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
    problems: Problems,
) -> None:
    """Names of queues and hosts, and users that a limit counts in and out at once."""
    for limit, place in limits:
        owner = f"limit {limit.name[:200]}"
        for name in limit.queues:
            if name.lstrip("~") not in queues and name != "all":
                problems.error(place, f"{owner}: QUEUES: no queue {name[:200]} in lsb.queues")
        for name in limit.hosts if known_hosts else ():
            if name.lstrip("~") not in known_hosts and name != "all":
                problems.error(place, f"{owner}: HOSTS: unknown host or host group {name[:200]}")
        words = set(limit.users)
        both = sorted(word for word in words if "~" + word in words)
        if both:
            problems.error(place, f"{owner}: USERS: {both[0][:200]} is counted in and out")
        empty = sorted(word for word in words if word in groups and not groups[word].members)
        if empty:
            problems.warn(place, f"{owner}: USERS: user group {empty[0][:200]} has no members")
