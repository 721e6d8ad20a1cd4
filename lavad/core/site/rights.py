"""Who may do what: administrators of the cluster, of queues, groups and hosts; users of queues; the owner of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import SHARE_KEYWORDS, FairShare, Shares
from lavad.core.job.spec import Spec
from lavad.core.job.user_group import left_out, named_group
from lavad.core.lang.asks import Caller
from lavad.core.site.conf import Conf

DENIED = "User permission denied"


class NamedUsers:
    """The users that a list of users and user groups names; ``~name`` excludes."""

    def __init__(self, conf: Conf, words: Iterable[str]) -> None:
        words = tuple(words)
        self._in = [conf.groups_of_users.users(word) for word in words if not word.startswith("~")]
        self._out = [conf.groups_of_users.users(word[1:]) for word in words if word.startswith("~")]

    def __contains__(self, user: object) -> bool:
        return any(user in one for one in self._in) and not any(user in one for one in self._out)

    @property
    def listed(self) -> frozenset[str] | None:
        """All of them; None: everybody but some."""
        if any(one.has_all for one in self._in):
            return None
        return frozenset(user for one in self._in for user in one.users if user in self)

    @property
    def left_out(self) -> frozenset[str]:
        """Those whom ``everybody but some`` leaves out."""
        return frozenset(user for one in self._in for user in one.out if user not in self)


def is_admin(conf: Conf, caller: Caller) -> bool:
    """Whether a caller is an administrator of the cluster (root is one)."""
    return caller.may_administer and (caller.uid == 0 or caller.user in conf.groups_of_users.expand(conf.admins))


def why_not_admin(conf: Conf, caller: Caller) -> str:
    """Why a caller is no administrator of the cluster here; "": they are."""
    return _why_not(caller, lambda one: is_admin(conf, one))


def _why_not(caller: Caller, may: Callable[[Caller], bool]) -> str:
    """Why a caller may not do something; an administrator on another host is told where they may. "": they may."""
    if may(caller):
        return ""
    elsewhere = not caller.may_administer and may(as_administrator(caller))
    return f"{DENIED}{': administrators have their rights on LAVA_ADMIN_HOSTS only' if elsewhere else ''}"


def as_administrator(caller: Caller) -> Caller:
    """The caller on a host where administrators have their rights."""
    return replace(caller, may_administer=True)


def _administers(conf: Conf, caller: Caller, names: tuple[str, ...]) -> bool:
    """Whether a caller is one of the administrators named, on a host where they have their rights."""
    return caller.may_administer and caller.user in conf.groups_of_users.expand(names)


def is_queue_admin(conf: Conf, queue: str, caller: Caller) -> bool:
    """Whether a caller is an administrator of the cluster or of this queue."""
    if is_admin(conf, caller):
        return True
    return any(row.name == queue and _administers(conf, caller, row.administrators) for row in conf.queues)


def why_not_queue(conf: Conf, queue: str, caller: Caller) -> str:
    """Why a caller may not administer a queue; "": they may."""
    return _why_not(caller, lambda one: is_queue_admin(conf, queue, one))


def may_use_queue(conf: Conf, queue: QueueConfig, user: str) -> bool:
    """Whether USERS of lsb.queues lets a user submit to the queue; ``~name`` excludes one from ``all``."""
    return queue.users == ("all",) or user in NamedUsers(conf, queue.users)


def is_group_admin(conf: Conf, spec: Spec, caller: Caller) -> bool:
    """Whether a caller is an administrator of a user group that the owner of a job is in.

    With STRICT_UG_CONTROL, of a job of a group (-G) that the owner is in, of that group.
    """
    own = named_group(spec.user_group) if conf.params.strict_ug_control else ""
    if own and spec.user not in conf.groups_of_users.users(own):
        own = ""
    return any(
        _administers(conf, caller, admins) and (group == own if own else spec.user in conf.groups_of_users.users(group))
        for group, admins in conf.params.user_group_admins
    )


def why_not_switch(conf: Conf, host: str, caller: Caller) -> str:
    """Why a caller may not open and close a host; "": they may."""
    return _why_not(caller, lambda one: may_switch_host(conf, host, one))


def may_switch_host(conf: Conf, host: str, caller: Caller) -> bool:
    """Whether a caller may open and close a host: of the cluster, or of a group or compute unit that has it."""
    return is_admin(conf, caller) or any(
        _administers(conf, caller, admins) and {host, "all"}.intersection(conf.groups_of_hosts.hosts(group))
        for group, admins in conf.params.host_group_admins
    )


def may_control(conf: Conf, spec: Spec, caller: Caller) -> bool:
    """Whether a caller may change a job."""
    return caller.user == spec.user or is_queue_admin(conf, spec.queue, caller) or is_group_admin(conf, spec, caller)


def why_not_control(conf: Conf, spec: Spec, caller: Caller) -> str:
    """Why a caller may not change a job; "": they may."""
    return _why_not(caller, lambda one: may_control(conf, spec, one))


def find_share(conf: Conf, queue: str) -> FairShare | None:
    """The fair share policy of a queue: its own, or that of the queue whose FAIRSHARE_QUEUES names it; None: it has none."""
    for other in conf.queues:
        if other.share is not None and queue in (other.name, *other.share.queues):
            return other.share
    return None


def has_share(conf: Conf, queue: str, user: str, group: str = "") -> bool:
    """Whether a user may submit to a queue as far as fair share goes: as in LSF, only users with a share of it may.

    ``group``: ``-G`` of the job; it may leave out groups that the user has a share by.
    """
    share = find_share(conf, queue)
    return share is None or not share.shares or _is_in(conf, share.shares, user, left_out(group))


def _is_in(conf: Conf, shares: Shares, user: str, above: frozenset[str]) -> bool:
    groups, inner = conf.groups_of_users.members, dict(conf.group_shares)
    for name, _ in shares:
        group = name.rstrip("@/")
        if name == user or name in SHARE_KEYWORDS:
            return True
        if group not in groups or group in above or user not in conf.groups_of_users.users(group):
            continue
        if name.endswith("@") or group not in inner or _is_in(conf, inner[group], user, above | {group}):
            return True
    return False
