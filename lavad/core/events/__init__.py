"""The facts that change a cluster, by subject, and ``apply``, the only code that changes it.

``from lavad.core import events as ev`` names every event (``ev.JobFinished``). May import cluster and below.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

from lavad.core.events.attempt import (
    CheckpointFailed,
    CheckpointHolder,
    CheckpointMade,
    CheckpointPeriodSet,
    CheckpointStaged,
    JobDispatched,
    JobFound,
    JobLost,
    JobResumed,
    JobSuspended,
    RanksSuspected,
    RusageDecayed,
    SignalHandled,
    SignalRequested,
)
from lavad.core.events.base import Event, IllegalMove, JobEvent, kind_of
from lavad.core.events.change import JobModified, JobMoved, JobSwitched, MessagePosted, RunLimitMoved
from lavad.core.events.ending import JobFinished, JobRequeued, MemoryLearnt, over_at
from lavad.core.events.part import (
    GangReleased,
    PartEnded,
    PartFenced,
    PartGone,
    PartPrepared,
    PartRefused,
    PartStarted,
    PartStopped,
)
from lavad.core.events.pending import DependencyJudged, JobDeadlocked, JobHeld, JobReleased, SlotsReleased, SlotsReserved
from lavad.core.events.resize import JobGrew, JobResized, JobShrank, PartLeft, ResizeAsked
from lavad.core.events.site import (
    AdvanceReservationEnded,
    AdvanceReservationSet,
    Configured,
    ExceptionsTold,
    GoalsMissed,
    GpuSwitched,
    GroupDropped,
    GroupSet,
    HostDown,
    HostFenced,
    HostJoined,
    HostLeft,
    HostSwitched,
    HostUp,
    LeasesExtended,
    MasterStarted,
    QueueSwitched,
    SpecAdded,
    StoreRestored,
)
from lavad.core.events.submission import ElementsHeld, ElementsKilled, ElementSplit, ElementsReleased, JobRevived, JobSubmitted
from lavad.core.events.task import (
    ActionDue,
    ActionPostponed,
    JobJudged,
    TaskEnded,
    TaskRetried,
    TasksRecalled,
    TasksReturned,
    TaskStarted,
)
from lavad.core.events.tokens import TokenMade, TokensEnded


def _kinds(kind: type[Event]) -> list[type[Event]]:
    """The events below a base class, in the order of their definition."""
    below = kind.__subclasses__()
    return [kind] if not below else [found for each in below for found in _kinds(each)]


EVENTS = tuple(_kinds(Event))
if TYPE_CHECKING:
    AnyEvent = Event
else:
    AnyEvent = functools.reduce(operator.or_, EVENTS)
"""The union of all events, for decoders."""

__all__ = [
    "EVENTS",
    "ActionDue",
    "ActionPostponed",
    "AdvanceReservationEnded",
    "AdvanceReservationSet",
    "AnyEvent",
    "CheckpointFailed",
    "CheckpointHolder",
    "CheckpointMade",
    "CheckpointPeriodSet",
    "CheckpointStaged",
    "Configured",
    "DependencyJudged",
    "ElementSplit",
    "ElementsHeld",
    "ElementsKilled",
    "ElementsReleased",
    "Event",
    "ExceptionsTold",
    "GangReleased",
    "GoalsMissed",
    "GpuSwitched",
    "GroupDropped",
    "GroupSet",
    "HostDown",
    "HostFenced",
    "HostJoined",
    "HostLeft",
    "HostSwitched",
    "HostUp",
    "IllegalMove",
    "JobDeadlocked",
    "JobDispatched",
    "JobEvent",
    "JobFinished",
    "JobFound",
    "JobGrew",
    "JobHeld",
    "JobJudged",
    "JobLost",
    "JobModified",
    "JobMoved",
    "JobReleased",
    "JobRequeued",
    "JobResized",
    "JobResumed",
    "JobRevived",
    "JobShrank",
    "JobSubmitted",
    "JobSuspended",
    "JobSwitched",
    "LeasesExtended",
    "MasterStarted",
    "MemoryLearnt",
    "MessagePosted",
    "PartEnded",
    "PartFenced",
    "PartGone",
    "PartLeft",
    "PartPrepared",
    "PartRefused",
    "PartStarted",
    "PartStopped",
    "QueueSwitched",
    "RanksSuspected",
    "ResizeAsked",
    "RunLimitMoved",
    "RusageDecayed",
    "SignalHandled",
    "SignalRequested",
    "SlotsReleased",
    "SlotsReserved",
    "SpecAdded",
    "StoreRestored",
    "TaskEnded",
    "TaskRetried",
    "TaskStarted",
    "TasksRecalled",
    "TasksReturned",
    "TokenMade",
    "TokensEnded",
    "kind_of",
    "over_at",
]
