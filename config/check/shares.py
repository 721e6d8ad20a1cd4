"""What fair share of one queue says against another, or against the groups of lsb.users."""

from collections.abc import Callable, Mapping

from config.model.cluster import GroupConfig, PartitionConfig
from config.model.problems import Place, Problems
from config.model.queue import QueueConfig
from config.model.values import Shares

_KEYWORDS = ("default", "others")
PlaceOf = Callable[[str, str], Place]
"""Queue and parameter to where it stands."""


def check_shares(queues: Mapping[str, QueueConfig], place: PlaceOf, problems: Problems) -> None:
    """Names of queues, one policy a queue, and policies that exclude each other."""
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
        _check_twice(queue.fairshare, place(name, "FAIRSHARE"), f"queue {name}: FAIRSHARE", problems)


def _check_twice(shares: Shares, place: Place, owner: str, problems: Problems) -> None:
    seen: set[str] = set()
    for name, _ in shares:
        if name in seen:
            problems.error(place, f"{owner}: {name[:200]} has shares twice")
        seen.add(name)


def check_groups(
    groups: Mapping[str, GroupConfig],
    partitions: tuple[PartitionConfig, ...],
    places: Mapping[str, Place],
    problems: Problems,
) -> None:
    """Shares in a group go to its members; a partition's shares stand once."""
    for name, group in groups.items():
        place = places[name]
        _check_twice(group.shares, place, f"user group {name}: USER_SHARES", problems)
        open_ended = "all" in group.members or any(member in groups for member in group.members)
        for member, _ in group.shares:
            bare = member.rstrip("@/")
            if bare not in _KEYWORDS and bare not in group.members and not open_ended:
                problems.warn(place, f"user group {name}: USER_SHARES: {member[:200]} is no member")
    for part in partitions:
        _check_twice(part.shares, places.get(part.name, Place("lsb.hosts", 0)), f"host partition {part.name}", problems)
