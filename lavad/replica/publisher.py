"""What the master tells its replicas of each batch, and the plan that a batch waits for before it is committed.

The scheduler hears of a batch while it is being committed, and plans meanwhile; its plan is judged after the commit. Of a batch
in which jobs have ended while others are pending it hears before that: its plan is decided in the same batch, so that ends and
the starts that take their slots are one commit. Where a batch that it was told of fails, the scheduler is started again, and for
AFTER_FAILURE seconds hears of batches that are committed only; each time for twice as long, up to LONG_AFTER, as a user can have
one fail by an ask that was answered long ago.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import SoftUpdate, joined
from lavad.replica import protocol as feed
from lavad.replica.replicas import ReplicaProcess

AFTER_FAILURE, LONG_AFTER = 60.0, 3600.0
MOST = 0.01
"""Seconds for which a batch waits for a plan at most."""
QUICK = 0.003
"""Seconds of a cycle up to which a plan is waited for: with longer ones users would wait for longer than a commit takes."""
NEWS, LONGEST = 50e-6, 0.5
"""Seconds for each host of the site for which soft news waits for more, and at most: a host's news come every few seconds."""
TOGETHER = 2000
"""Hosts and samples of jobs that are told of together at most: callers wait while they are encoded."""
log = logging.getLogger(__name__)


class AwaitedPlan:
    """The scheduler's plan for the changes of a batch that is not committed yet."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self._version = -1
        """Version of the cluster that a plan was last asked for."""
        self._answered = True
        """Whether that one has come, or a later one."""
        self._taken = False
        """The master is at a plan: the scheduler makes the next one after it."""
        self._starts = True
        """Whether the last plan that was asked for decided something, or one after it."""
        self._took = 0.0
        """Seconds that its cycle took."""

    def is_near(self) -> bool:
        """Whether a plan that is asked for now may come soon, and have something to decide."""
        return self._answered and self._starts and not self._taken and self._took <= QUICK

    async def wait(self, version: int) -> None:
        """Until a plan of this version of the cluster is handed in, or another that decides something; at most MOST seconds."""
        loop = asyncio.get_running_loop()
        self._version, self._answered = version, False
        self._waiting = loop.create_future()
        late = loop.call_later(MOST, self._end)
        await self._waiting
        late.cancel()

    def came(self, plan: Plan) -> None:
        """A plan came, and is handed in to the engine if it decides something."""
        self._took, self._taken = plan.took, plan.decides
        if plan.decides or (plan.version >= self._version and not self._answered):
            self._answered, self._starts = True, plan.decides
            self._end()

    def done(self) -> None:
        """What became of the plan is decided: the scheduler is about to hear of it, and makes another then."""
        self._taken = False

    def forget(self) -> None:
        """The scheduler is started again."""
        self._taken, self._answered = False, True
        self._end()

    def _end(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Publisher:
    """Feeds batches and soft news to the replicas."""

    def __init__(
        self,
        scheduler: ReplicaProcess,
        queries: ReplicaProcess,
        clock: Callable[[], float] = time.monotonic,
        hosts: Callable[[], int] = lambda: 0,
    ) -> None:
        """``hosts``: how many there are."""
        self._scheduler = scheduler
        self._queries = queries
        self._clock = clock
        self._hosts = hosts
        self.plan = AwaitedPlan()
        self._frames: list[bytes] = []
        """The batch that is decided or committed, encoded once; mostly one frame."""
        self._sent = 0
        """How many of them the scheduler has."""
        self._ahead = False
        """It hears of this batch before the commit."""
        self._news: list[SoftUpdate] = []
        self._news_size = 0
        self._news_due: asyncio.TimerHandle | None = None
        self._trusted_from = 0.0
        self._pause = AFTER_FAILURE

    def wants_plan(self, cluster: Cluster) -> bool:
        """Whether a batch with these changes waits for a plan: jobs that ran ended, others are pending, and one may come soon."""
        if not cluster.finished or not cluster.pending or self._clock() < self._trusted_from or not self.plan.is_near():
            return False
        return any(job.run is not None for job in cluster.finished.values())

    async def planned(self, events: Sequence[Event], version: int) -> int:
        """Tell the scheduler of the first events of a batch, and wait for its plan; how many it was told of."""
        try:
            self._add(events, plan=True)
        except (UnicodeEncodeError, OverflowError):
            return 0  # the commit will tell whose fault it is
        self._send()
        await self.plan.wait(version)
        return len(events)

    def begun(self, events: Sequence[Event]) -> None:
        """A batch is being committed, whose last events these are; none: it was told of in full.

        Raises UnicodeEncodeError, OverflowError: they cannot be encoded, and nobody is told.
        """
        if events:
            self._add(events)

    def _add(self, events: Sequence[Event], plan: bool = False) -> None:
        frame = feed.frame(feed.Events(events=list(events), plan=plan))
        if not self._frames:
            self._ahead = self._clock() >= self._trusted_from
        self._frames.append(frame)

    def under_way(self) -> None:
        """Tell the scheduler; the store has been given the batch if all of it is decided."""
        if self._ahead:
            self._send()

    def _send(self) -> None:
        if self._sent < len(self._frames):
            self._tell_news()
        for frame in self._frames[self._sent :]:
            self._scheduler.send_frame(frame)
        self._sent = len(self._frames)

    def undone(self) -> None:
        """The batch is not committed."""
        if self._sent:
            log.info("the scheduler is started again, as it was told of a commit that failed")
            self._scheduler.start_again()
            self.plan.forget()
            self._trusted_from = self._clock() + self._pause
            self._pause = min(2 * self._pause, LONG_AFTER)
        self._trusted_from = max(self._trusted_from, self._clock() + AFTER_FAILURE)
        self._frames, self._sent = [], 0

    def committed(self, _: Committed) -> None:
        """The batch is committed."""
        self._send()
        for frame in self._frames:
            self._queries.send_frame(frame)
        self._frames, self._sent = [], 0

    def soft(self, news: SoftUpdate) -> None:
        """Soft news, which goes with what comes soon after it: each message to the scheduler is a cycle over all hosts, and a
        large site has a heartbeat every millisecond."""
        self._news.append(news)
        self._news_size += 1 + len(news.usage)
        if self._news_size >= TOGETHER:
            self._tell_news()
        elif self._news_due is None:
            pause = min(LONGEST, NEWS * self._hosts())
            self._news_due = asyncio.get_running_loop().call_later(pause, self._tell_news)

    def _tell_news(self) -> None:
        """Before later events: the usage of a job that ended meanwhile would stay for ever."""
        if self._news_due is not None:
            self._news_due.cancel()
            self._news_due = None
        if self._news:
            frame, self._news, self._news_size = feed.frame(joined(self._news)), [], 0
            self._scheduler.send_frame(frame)
            self._queries.send_frame(frame)
