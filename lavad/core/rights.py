"""Who may do what: the cluster's administrators, a queue's administrators and users, and the owner of a job."""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.asks import Caller
from lavad.core.conf import Conf, QueueConf


def expand_users(conf: Conf, names: Iterable[str]) -> frozenset[str]:
    """User names and groups with the groups' members (groups may nest)."""
    groups = dict(conf.user_groups)
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += groups.get(name.rstrip("/"), ())
    return frozenset(found)


def is_admin(conf: Conf, caller: Caller) -> bool:
    """An administrator of the cluster (root is one)."""
    return caller.uid == 0 or caller.user in expand_users(conf, conf.admins)


def is_queue_admin(conf: Conf, queue: str, caller: Caller) -> bool:
    """An administrator of the cluster or of this queue."""
    if is_admin(conf, caller):
        return True
    return any(row.name == queue and caller.user in expand_users(conf, row.admins) for row in conf.queues)


def may_use_queue(conf: Conf, queue: QueueConf, user: str) -> bool:
    """Whether lsb.queues' USERS lets a user submit to the queue; ``~name`` takes one out of ``all``."""
    out = {name[1:] for name in queue.users if name.startswith("~")}
    names = [name for name in queue.users if not name.startswith("~")]
    if user in expand_users(conf, out):
        return False
    return "all" in names or user in expand_users(conf, names)


def may_control(conf: Conf, owner: str, queue: str, caller: Caller) -> bool:
    """Whether a caller may change a job of ``owner`` in ``queue``."""
    return caller.user == owner or is_queue_admin(conf, queue, caller)
