"""Changes for a what-if: added or removed hosts, another policy, queue priorities, another configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import Backfill, FairShare
from lavad.core import events as ev
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts, Host

FOREVER = 1_000_000
"""MAX_RESERVE_TIME periods that never end."""
POLICIES = ("fcfs", "fairshare", "easy", "conservative")


class ChangeError(Exception):
    """Why a change cannot be made, in one line."""


class Changes(msgspec.Struct, frozen=True):
    """``policy`` "": as configured. ``slots``: of each added host, 0: as the host that it is like."""

    policy: str = ""
    add: int = 0
    slots: int = 0
    like: str = ""
    remove: tuple[str, ...] = ()
    priorities: tuple[tuple[str, int], ...] = ()
    conf: Conf | None = None

    @property
    def none(self) -> bool:
        """Whether everything is as it was."""
        return self == Changes()


def new_names(changes: Changes, hosts: Iterable[str]) -> list[str]:
    """The names of the added hosts."""
    taken = set(hosts)
    names = (f"added{number}" for number in range(1, FOREVER))
    return [name for _, name in zip(range(changes.add), (name for name in names if name not in taken), strict=False)]


def check(changes: Changes, conf: Conf, hosts: Iterable[str]) -> None:
    """Raise ``ChangeError`` where a change names something that does not exist."""
    known, queues = set(hosts), {queue.name for queue in (changes.conf or conf).queues}
    for name in (*changes.remove, *([changes.like] if changes.like else [])):
        if name not in known:
            raise ChangeError(f"{name}: no such host")
    for name, _ in changes.priorities:
        if name not in queues:
            raise ChangeError(f"{name}: no such queue")
    if changes.add and not known:
        raise ChangeError("no host is known that an added one could be like")
    if known and known <= set(changes.remove) and not changes.add:
        raise ChangeError("no host is left")


def changed_conf(conf: Conf, changes: Changes, names: list[str], like: str) -> Conf:
    """The configuration with the changes; ``names`` are added hosts, which are like ``like``."""
    conf = changes.conf or conf
    priorities = dict(changes.priorities)
    queues = tuple(
        _with_policy(replace(queue, priority=priorities.get(queue.name, queue.priority)), changes.policy) for queue in conf.queues
    )
    if changes.policy:
        conf = replace(conf, partitions=())
    if changes.policy in ("easy", "conservative"):
        conf = replace(conf, params=replace(conf.params, lava_backfill=Backfill(changes.policy)))
    conf = replace(conf, queues=queues)
    return _with_hosts(conf, changes, names, like) if names else conf


def _with_policy(queue: QueueConfig, policy: str) -> QueueConfig:
    if not policy:
        return queue
    plain = replace(queue, share=None, aps_priority=None, slot_reserve=0, resource_reserve=0, backfill=False)
    if policy == "fairshare":
        return replace(plain, share=queue.share or FairShare(shares=(("default", 1),)))
    if policy in ("easy", "conservative"):
        return replace(plain, slot_reserve=FOREVER, backfill=True)
    return plain


def _with_hosts(conf: Conf, changes: Changes, names: list[str], like: str) -> Conf:
    """The configuration with the added hosts wherever the host that they copy is named."""
    own = next((host for host in conf.hosts if host.name == like), None)
    if own is not None or changes.slots:
        own = own or HostConfig(name=like)
        own = replace(own, slots=changes.slots or own.slots)
        conf = replace(conf, hosts=(*conf.hosts, *(replace(own, name=name) for name in names)))
    groups = tuple((group, _joined(members, names, like)) for group, members in conf.host_groups)
    queues = tuple(replace(queue, hosts=_joined(queue.hosts, names, like)) for queue in conf.queues)
    resources = tuple(
        replace(one, locations=tuple((amount, _joined(hosts, names, like)) for amount, hosts in one.locations))
        for one in conf.resources
    )
    return replace(conf, host_groups=groups, queues=queues, resources=resources)


def _joined(members: tuple[str, ...], names: list[str], like: str) -> tuple[str, ...]:
    return (*members, *names) if like in members else members


def changed_actions(actions: Iterable[ev.Event], changes: Changes, names: list[str], like: str) -> Iterator[ev.Event]:
    """The external events under the changes: removed hosts never join, added ones join with the host that they copy."""
    added = False
    for event in actions:
        if isinstance(event, ev.Configured):
            yield replace(event, conf=changed_conf(event.conf, changes, names, like))
            continue
        if getattr(event, "host", "") in changes.remove and not isinstance(event, ev.MasterStarted):
            if not (isinstance(event, ev.HostJoined) and event.host == like):
                continue
        else:
            yield event
        if isinstance(event, ev.HostJoined) and event.host == like and not added:
            added = True
            yield from added_hosts(names, event.facts, changes, event.at)


def added_hosts(names: list[str], facts: Facts, changes: Changes, at: float) -> Iterator[ev.Event]:
    """They join and are up."""
    for name in names:
        cards = tuple(replace(card, uuid=f"{card.uuid}-{name}") for card in facts.gpus)
        yield ev.HostJoined(at=at, host=name, facts=replace(facts, gpus=cards, ncpus=changes.slots or facts.ncpus))
        yield ev.HostUp(at=at, host=name)


def pattern(changes: Changes, hosts: Iterable[Host]) -> str:
    """The host that added ones are like: the one that is named, else the one with the most CPUs, the first of these by name."""
    if changes.like:
        return changes.like
    found = sorted(hosts, key=lambda host: (-host.facts.ncpus, host.name))
    return found[0].name if found else ""
