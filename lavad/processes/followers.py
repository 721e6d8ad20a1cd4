"""Those who follow the events of the cluster (the query ``api events``): each gets what it may see, together, once a second.

Rule: an event is looked at once for all of them; one who reads too slowly is told how many there were instead of which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller
from lavad.core.lang.ids import show
from lavad.queries.facts.visibility import Sight, sight_of
from lavad.replica import protocol as feed
from proto.records import Happened, News

TOGETHER = 1.0
"""Seconds between two frames for a follower."""
MOST = 200
UNREAD = 8
"""Frames that a follower has not taken, from which on nothing more is sent."""
_OF_JOBS = (
    ev.JobSubmitted, ev.JobDispatched, ev.PartStarted, ev.JobSuspended, ev.JobResumed, ev.JobLost, ev.JobFound, ev.JobRequeued,
    ev.JobFinished, ev.JobHeld, ev.JobReleased, ev.JobModified, ev.JobSwitched, ev.JobMoved, ev.ElementsHeld,
    ev.ElementsReleased, ev.ElementsKilled, ev.JobRevived, ev.MessagePosted,
)  # fmt: skip
_OF_SITE = (
    ev.HostJoined, ev.HostUp, ev.HostDown, ev.HostSwitched, ev.HostLeft, ev.GpuSwitched, ev.QueueSwitched, ev.Configured,
    ev.MasterStarted,
)  # fmt: skip
_encode = msgspec.json.Encoder().encode
Send = Callable[[feed.Answer], None]


class _Follower:
    """One of them, with what waits for it."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.events: list[Happened] = []
        self.more = 0
        self.sent = self.taken = 0
        self.greeted = False


class Followers:
    """All of them; ``clock`` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._all: dict[int, _Follower] = {}
        self._sent_at = self._clock() - TOGETHER

    def follow(self, ask: feed.Ask) -> None:
        """From now on; the first news, at once, say only where the cluster is."""
        self._all[ask.number] = _Follower(ask.caller)
        self._sent_at = self._clock() - TOGETHER

    def drop(self, number: int) -> None:
        """It has gone."""
        self._all.pop(number, None)

    def taken(self, number: int, count: int) -> None:
        """It has read so many frames."""
        if number in self._all:
            self._all[number].taken += count

    def happened(self, cluster: Cluster, events: Sequence[ev.Event]) -> None:
        """A commit, which is applied."""
        if not self._all:
            return
        first = cluster.version - len(events) + 1
        for at, event in enumerate(events):
            told = _told(cluster, event, first + at)
            if told is None:
                continue
            happened, spec = told
            for follower in self._all.values():
                if not _sees(cluster, follower.caller, spec, isinstance(event, ev.JobEvent)):
                    continue
                if len(follower.events) < MOST:
                    follower.events.append(happened)
                else:
                    follower.more += 1

    def due(self) -> float | None:
        """Seconds until the next frames; None: nobody waits for one."""
        if not any(self._has_news(follower) for follower in self._all.values()):
            return None
        return max(0.0, self._sent_at + TOGETHER - self._clock())

    def _has_news(self, follower: _Follower) -> bool:
        return (bool(follower.events) or not follower.greeted) and follower.sent - follower.taken < UNREAD

    def send(self, version: int, send: Send) -> None:
        """What is due."""
        if self.due() != 0.0:
            return
        self._sent_at = self._clock()
        for number, follower in self._all.items():
            if self._has_news(follower):
                news = _encode(News(version=version, events=follower.events, more=follower.more)).decode()
                follower.events, follower.more, follower.greeted = [], 0, True
                follower.sent += 1
                send(feed.Answer(number=number, pieces=[("out", news + "\n")]))


def _told(cluster: Cluster, event: ev.Event, version: int) -> tuple[Happened, Spec | None] | None:
    """What is said of an event, and the spec of its job; None: nothing."""
    kind = ev.kind_of(type(event))
    if isinstance(event, _OF_JOBS):
        row: Job | None = cluster.finished.get(event.key) or cluster.jobs.rows.get(event.key)
        array = cluster.find_array(event.key) if row is None else None
        number = row.spec if row is not None else array.spec if array is not None else -1
        spec = cluster.specs.rows.get(number)
        state = row.state.name if row is not None else ""
        user, queue = (spec.user, spec.queue) if spec is not None else ("", "")
        happened = Happened(version=version, at=event.at, kind=kind, id=show(event.key), user=user, queue=queue, state=state)
        return happened, spec
    if isinstance(event, _OF_SITE):
        host, queue = getattr(event, "host", ""), getattr(event, "queue", "")
        return Happened(version=version, at=event.at, kind=kind, host=host, queue=queue), None
    return None


def _sees(cluster: Cluster, caller: Caller, spec: Spec | None, of_job: bool) -> bool:
    if not of_job:
        return True
    if spec is None:
        return cluster.conf.params.secure_job_info_level == 0
    return sight_of(cluster.conf, caller, spec) >= Sight.SUMMARY
