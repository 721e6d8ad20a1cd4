"""The facts about the master, the configuration, hosts, queues, groups and specs; ``events`` has all of them."""

from __future__ import annotations

from lavad.core.events.base import Event
from lavad.core.job.groups import JobGroup
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.core.site.reservation import Reservation


class MasterStarted(Event, frozen=True):
    """A master took over with this epoch; ``incarnation`` changes when the store is a new or restored one."""

    epoch: int
    incarnation: str
    host: str = ""


class Configured(Event, frozen=True):
    """The configuration changed as a whole."""

    conf: Conf


class SpecAdded(Event, frozen=True):
    """A spec that no live job has had, under its number."""

    spec: int
    value: Spec


class HostJoined(Event, frozen=True):
    """A host's agent said what the host is (first time, or the facts changed)."""

    host: str
    facts: Facts


class HostUp(Event, frozen=True):
    """The master hears the host."""

    host: str


class HostDown(Event, frozen=True):
    """The master has not heard the host for its timeout."""

    host: str


class HostLeft(Event, frozen=True):
    """The cluster no longer has the host: no file names it, and nothing of it is in use."""

    host: str
    why: str = ""


class HostSwitched(Event, frozen=True):
    """An administrator opened or closed a host."""

    host: str
    closed: bool
    by: str
    comment: str = ""


class QueueSwitched(Event, frozen=True):
    """An administrator opened, closed, activated or inactivated a queue."""

    queue: str
    open: bool
    active: bool
    by: str
    comment: str = ""
    what: str = ""
    """What was asked: ``qopen``, ``qclose``, ``qact``, ``qinact``."""


class GroupSet(Event, frozen=True):
    """A job group was added, or has another limit."""

    value: JobGroup
    by: str = ""


class GroupDropped(Event, frozen=True):
    """A job group is gone."""

    group: str


class ReservationSet(Event, frozen=True):
    """An advance reservation was added or changed, or its next period is this now."""

    value: Reservation
    by: str = ""


class ReservationEnded(Event, frozen=True):
    """An advance reservation is over, or was deleted."""

    name: str
    by: str = ""
