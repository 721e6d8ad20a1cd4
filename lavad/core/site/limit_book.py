"""The limits of one configuration: which sections of lsb.users and lsb.resources apply to a user, a class, a host.

Rule: it depends on the configuration only, so that it is made once and asked often.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property

from config.model.cluster import GPU_RESOURCES, HostConfig, Limit, UserConfig
from config.model.queue import QueueConfig
from lavad.core.job.spec import Spec
from lavad.core.job.user_group import left_out, named_group
from lavad.core.site.conf import Conf

Consumer = tuple[str, str, str, str]
"""(user, queue, project, application profile); "" where a limit does not count these separately."""
MOST_KNOWN = 10_000
"""Kinds of jobs of which it is kept which limits apply to them."""


class LimitBook:
    """The limits of one configuration, each list built once, when it is asked for."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self._sections = {section.name: section for section in conf.users}
        self._users: dict[str, tuple[tuple[UserConfig, tuple[str, ...]], ...]] = {}
        self._host_limits: dict[tuple[str, str], bool] = {}
        self._applying: dict[tuple[Consumer, str], tuple[tuple[int, Limit, Consumer], ...]] = {}

    @cached_property
    def queues(self) -> dict[str, QueueConfig]:
        """The queues by name."""
        return {queue.name: queue for queue in self.conf.queues}

    @cached_property
    def hosts(self) -> dict[str, HostConfig]:
        """The sections of lsb.hosts by name."""
        return {host.name: host for host in self.conf.hosts}

    @cached_property
    def per_host(self) -> bool:
        """Whether any limit of lsb.resources is about hosts."""
        return any(limit.hosts or limit.per_host for limit in self.conf.limits)

    @cached_property
    def on_gpus(self) -> tuple[int, ...]:
        """The limits of lsb.resources on GPUs, by their places."""
        return tuple(at for at, limit in enumerate(self.conf.limits) if _counts_gpus(limit))

    @cached_property
    def over_hosts(self) -> tuple[int, ...]:
        """The limits of lsb.resources, by their places, that parts of a job on several hosts may break only together."""
        limits = enumerate(self.conf.limits)
        return tuple(
            at for at, limit in limits if not limit.per_host and (limit.hosts or limit.resources or limit.mem is not None)
        )

    @cached_property
    def counts_parts(self) -> bool:
        """Whether any limit counts what jobs have on single hosts, or is one of lsb.resources."""
        queues = any(queue.hjob_limit is not None or queue.pjob_limit is not None for queue in self.conf.queues)
        processors = any(section.slots_per_processor is not None for section in self.conf.users)
        return bool(self.conf.limits) or queues or self.host_users or processors

    @cached_property
    def host_users(self) -> bool:
        """Whether any host has a limit of each user."""
        return any(host.user_job_limit is not None for host in self.conf.hosts)

    @cached_property
    def _limit_hosts(self) -> list[frozenset[str]]:
        return [_hosts(self.conf, limit.hosts, "") for limit in self.conf.limits]

    @cached_property
    def _not_hosts(self) -> list[frozenset[str]]:
        return [_hosts(self.conf, limit.hosts, "~") for limit in self.conf.limits]

    def _chosen(self, spec: Spec) -> str:
        """ENFORCE_ONE_UG_LIMITS: ``-G`` of a job, by which not the limits of all groups of its user hold for it; "": all do.

        A group that the user is not in changes nothing.
        """
        given = spec.user_group if self.conf.params.enforce_one_ug_limits else ""
        return given if not named_group(given) or given in self.conf.groups_of_users.of(spec.user) else ""

    def _groups_of(self, spec: Spec) -> tuple[str, ...]:
        """The user groups whose limits hold for a job."""
        chosen = self._chosen(spec)
        own = named_group(chosen)
        if own:
            return own, *(group for group in self.conf.groups_of_users.of(own) if group not in self._open_groups)
        out = left_out(chosen)
        groups = self.conf.groups_of_users.of(spec.user)
        return tuple(group for group in groups if group not in out) if out else groups

    @cached_property
    def _open_groups(self) -> frozenset[str]:
        """The user groups that everybody is in."""
        return frozenset(group for group, members_ in self.conf.user_groups if "all" in members_)

    def of_job(self, spec: Spec) -> tuple[tuple[UserConfig, tuple[str, ...]], ...]:
        """As ``of_user``, of the user of a job, without the groups whose limits do not hold for it."""
        found = self.of_user(spec.user)
        if not self._chosen(spec):
            return found
        names = self._groups_of(spec)
        return tuple((section, users) for section, users in found if not users or section.name in names)

    def of_user(self, user: str) -> tuple[tuple[UserConfig, tuple[str, ...]], ...]:
        """(section of lsb.users that holds for a user, users who share it; none: this user alone; ``all``: see ``sharers``)."""
        if user not in self._users:
            self._users[user] = tuple(self._user_sections(user))
        return self._users[user]

    def section_of(self, name: str) -> UserConfig | None:
        """The section that holds for a user alone: the user's own, that of each member of a group (``GROUP@``), the default.

        Of a user group: its own, else the default.
        """
        each = (self._sections[f"{group}@"] for group in self.conf.groups_of_users.of(name) if f"{group}@" in self._sections)
        return self._sections.get(name) or next(each, None) or self._sections.get("default")

    def _user_sections(self, user: str) -> Iterator[tuple[UserConfig, tuple[str, ...]]]:
        own = self.section_of(user)
        if own is not None:
            yield own, ()
        for group in self.conf.groups_of_users.of(user):
            if group in self._sections:
                yield self._sections[group], tuple(sorted(self.conf.groups_of_users.users(group).users))

    def sharers(self, section: UserConfig, users: tuple[str, ...], known: Callable[[], Iterable[str]]) -> Collection[str]:
        """The users who share a section (of ``of_job``): of one of everybody those that are ``known``."""
        if "all" not in users:
            return users
        named = self.conf.groups_of_users.users(section.name)
        return [user for user in known() if user in named]

    def has_host_limits(self, spec: Spec) -> bool:
        """Whether any limit on single hosts applies to jobs of this spec."""
        key = spec.queue, spec.user
        found = self._host_limits.get(key)
        if found is None:
            found = self._host_limits[key] = self._has_host_limits(*key)
        return found

    def _has_host_limits(self, name: str, user: str) -> bool:
        queue = self.queues.get(name)
        if queue is not None and (queue.hjob_limit is not None or queue.pjob_limit is not None):
            return True
        if self.host_users or self.per_host:
            return True
        return any(section.slots_per_processor is not None for section, _ in self.of_user(user))

    def counts_user(self, spec: Spec) -> bool:
        """Whether any limit counts jobs of this spec by their user, or asks who that is."""
        queue = self.queues.get(spec.queue)
        by_queue = queue is not None and queue.ujob_limit is not None
        by_limit = any(limit.per_user or limit.users for limit in self.conf.limits)
        return by_queue or by_limit or self.host_users or bool(self.of_job(spec))

    def over_hosts_together(self, spec: Spec) -> bool:
        """Whether a limit of lsb.resources on hosts counts what such jobs have on several of them."""
        return any(limit.hosts and not limit.per_host for _, limit, _ in self.applying(spec))

    def on_hosts(self, spec: Spec) -> tuple[object, ...]:
        """What tells kinds of jobs apart by limits on single hosts: those with an equal one have the same room on each host."""
        queue = self.queues.get(spec.queue)
        by_queue = queue is not None and (queue.hjob_limit is not None or queue.pjob_limit is not None)
        by_user = self.host_users or any(section.slots_per_processor is not None for section, _ in self.of_job(spec))
        each = tuple((at, whose) for at, limit, whose in self.applying(spec) if limit.hosts or limit.per_host)
        return spec.queue if by_queue else "", (spec.user, self._chosen(spec)) if by_user else (), each

    def applies(self, at: int, spec: Spec) -> bool:
        """Whether the ``at``-th limit of lsb.resources applies to jobs of this spec."""
        limit = self.conf.limits[at]
        return (
            _names(limit.queues, (spec.queue,))
            and (not limit.users or _names(limit.users, (spec.user, *self._groups_of(spec))))
            and _names(limit.projects, (spec.project,))
            and (not limit.apps or (bool(spec.app) and _names(limit.apps, (spec.app,))))
        )

    def applying(self, spec: Spec) -> tuple[tuple[int, Limit, Consumer], ...]:
        """The limits of lsb.resources that apply to jobs of this spec: place, limit, whose jobs it counts together."""
        if not self.conf.limits:
            return ()
        key = (spec.user, spec.queue, spec.project, spec.app), self._chosen(spec)
        found = self._applying.get(key)
        if found is None:
            if len(self._applying) >= MOST_KNOWN:
                self._applying.clear()
            places = [at for at in self._may_apply(spec) if self.applies(at, spec)]
            found = self._applying[key] = tuple((at, self.conf.limits[at], self.counted(at, spec)) for at in places)
        return found

    def _may_apply(self, spec: Spec) -> list[int]:
        """The places of the limits that may apply to jobs of this spec, in order: a site may have one for each of its users."""
        named = self._named
        found = {at for name in (spec.user, *self._groups_of(spec)) for at in named["users"].get(name, ())}
        for what, name in (("projects", spec.project), ("queues", spec.queue), ("apps", spec.app)):
            found.update(named[what].get(name, ()))
        return sorted(found.union(named[""].get("", ())))

    @cached_property
    def _named(self) -> dict[str, dict[str, list[int]]]:
        """The places of the limits by the first of their lists that names whom they are for, and by each name of that list.

        Those of which no list does are at "".
        """
        found: dict[str, dict[str, list[int]]] = {what: {} for what in ("users", "projects", "queues", "apps", "")}
        for at, limit in enumerate(self.conf.limits):
            lists = (("users", limit.users), ("projects", limit.projects), ("queues", limit.queues), ("apps", limit.apps))
            wanted = ((what, [word for word in words if not word.startswith("~")]) for what, words in lists)
            what, names = next(((what, names) for what, names in wanted if names and "all" not in names), ("", [""]))
            for name in names:
                found[what].setdefault(name, []).append(at)
        return found

    def counted(self, at: int, spec: Spec) -> Consumer:
        """Whose jobs a limit counts together with those of this spec."""
        limit = self.conf.limits[at]
        return (
            spec.user if limit.per_user else "",
            spec.queue if limit.per_queue else "",
            spec.project if limit.per_project else "",
            spec.app if limit.per_app else "",
        )

    def on_host(self, at: int, host: str) -> bool:
        """Whether a limit of lsb.resources counts what is on this host."""
        if host in self._not_hosts[at]:
            return False
        named = self._limit_hosts[at]
        return not named or "all" in named or host in named


def _counts_gpus(limit: Limit) -> bool:
    return any(name in GPU_RESOURCES for name, _ in limit.resources)


def _hosts(conf: Conf, words: tuple[str, ...], sign: str) -> frozenset[str]:
    """The hosts that a list names (sign "") or excludes ("~")."""
    found = (word[len(sign) :] for word in words if word.startswith("~") == bool(sign))
    return frozenset(host for word in found for host in conf.groups_of_hosts.hosts(word))


def _names(words: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether a list, in which ``~name`` excludes, means one of these names of a consumer."""
    if any(f"~{name}" in words for name in names):
        return False
    wanted = [word for word in words if not word.startswith("~")]
    return not wanted or "all" in wanted or any(name in wanted for name in names)
