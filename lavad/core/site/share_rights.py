"""Who may submit to a queue with fair share: only users with a share of it (LSF), administrators among them."""

from __future__ import annotations

from config.model.values import FairShare, Shares
from lavad.core.site.conf import Conf
from lavad.core.site.rights import expand_users

_ANYONE = ("default", "others", "all")


def find_share(conf: Conf, queue: str) -> FairShare | None:
    """The policy that rules a queue: its own, or that of the queue that it follows."""
    for other in conf.queues:
        if other.share is not None and queue in (other.name, *other.share.queues):
            return other.share
    return None


def has_share(conf: Conf, queue: str, user: str) -> bool:
    """Whether a user has a share of a queue, or the queue has none to give."""
    share = find_share(conf, queue)
    return share is None or not share.shares or _is_in(conf, share.shares, user, frozenset())


def _is_in(conf: Conf, shares: Shares, user: str, above: frozenset[str]) -> bool:
    groups, inner = dict(conf.user_groups), dict(conf.group_shares)
    for name, _ in shares:
        group = name.rstrip("@/")
        if name == user or name in _ANYONE:
            return True
        if group in groups and group not in above:
            users = expand_users(conf, [group])
            member = (user in users or "all" in users) and f"~{user}" not in users
            if member and (name.endswith("@") or group not in inner or _is_in(conf, inner[group], user, above | {group})):
                return True
    return False
