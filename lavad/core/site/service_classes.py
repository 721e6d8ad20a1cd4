"""Which service class a job belongs to: ``bsub -sla``, else the first with AUTO_ATTACH that lets it in (lsb.serviceclasses).

Rule: it is worked out from the configuration as it is and nothing is kept, so that jobs follow a change of queue, project or
file. A job whose class no longer lets it in belongs to none.
"""

from __future__ import annotations

from config.model.guarantees import Goal, ServiceClass
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf
from lavad.core.site.rights import NamedUsers

MissedGoals = tuple[tuple[str, Goal, float], ...]
"""(service class, goal, since when its violation period counts)."""
MOST_KNOWN = 10_000
"""Kinds of jobs of which it is kept to which class they belong."""


class ServiceClasses:
    """The service classes of one configuration."""

    def __init__(self, conf: Conf) -> None:
        self._conf = conf
        self._by_name = {one.name: one for one in conf.service_classes}
        self._auto = [one for one in conf.service_classes if one.auto_attach]
        self._known: dict[tuple[str, ...], str] = {}
        self._timed = frozenset(one.name for one in conf.service_classes if one.goals)

    def of(self, spec: Spec) -> str:
        """The class that jobs of this spec belong to; "": none."""
        if not self._by_name:
            return ""
        key = spec.user, spec.queue, spec.project, spec.app, spec.user_group, spec.service_class
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._find(spec)
        return found

    def with_goals(self, spec: Spec) -> str:
        """The class with goals in time that jobs of this spec belong to; "": none."""
        return found if self._timed and (found := self.of(spec)) in self._timed else ""

    def _find(self, spec: Spec) -> str:
        if spec.service_class:
            own = self._by_name.get(spec.service_class)
            return own.name if own is not None and self.lets_in(own, spec) else ""
        return next((one.name for one in self._auto if self.lets_in(one, spec)), "")

    def lets_in(self, service: ServiceClass, spec: Spec) -> bool:
        """Whether ACCESS_CONTROL of a class, by each of its lists, or USER_GROUP lets in jobs of this spec."""
        return (
            _has(service.queues, (spec.queue,))
            and (not service.users or self._is_named(service, spec.user))
            and _has(service.fairshare_groups, self._own_group(spec))
            and _has(service.apps, (spec.app,))
            and _has(service.projects, (spec.project,))
        )

    def _is_named(self, service: ServiceClass, user: str) -> bool:
        """Classes with goals are open to root and administrators as well (LSF)."""
        if user in NamedUsers(self._conf, service.users):
            return True
        return bool(service.goals) and (user == "root" or user in self._conf.groups_of_users.expand(self._conf.admins))

    def _own_group(self, spec: Spec) -> tuple[str, ...]:
        """The user group of a job (-G), if its user is in it."""
        return (spec.user_group,) if spec.user_group in self._conf.groups_of_users.of(spec.user) else ()


def _has(listed: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return not listed or "all" in listed or any(name in listed for name in names)
