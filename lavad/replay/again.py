"""Replays a recorded history through the scheduler and ``accept_plan``, and reports whether they decide the same.

Rule: events that are not decisions of the scheduler (submissions, reports of hosts, administration) are applied as recorded.
After a difference the recorded events are applied, so that one difference does not cause others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.placement.placement import accept_part, accept_plan
from lavad.core.events import Event, IllegalMove, JobDispatched, JobEvent, kind_of
from lavad.core.lang.ids import show
from lavad.core.plan.cycle_record import RecordedCycle, digest_of, fold_record, unpack
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.core.site.limit_book import LimitBook
from lavad.processes.site_policy import SitePolicies
from lavad.replay.history import HistoryError, Item
from lavad.replica import protocol as feed
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache

_encode = msgspec.msgpack.Encoder().encode
TOGETHER = 2_000


class Difference(msgspec.Struct, frozen=True):
    """The first different decision: texts of the recorded and the new event, "" where there is none."""

    version: int
    now: float
    recorded: str
    replayed: str


class Outcome(msgspec.Struct):
    """What a replay found."""

    events: int = 0
    plans: int = 0
    equal: int = 0
    """Plans that were the same, and were accepted in the same way."""
    decisions: Counter[str] = msgspec.field(default_factory=Counter)
    """Kind of event to how many of it the recorded plans made."""
    before: int = 0
    """Starts from before the first recorded plan."""
    first: Difference | None = None


class _Open:
    """A plan that was made again, until all its recorded events are read."""

    def __init__(self, cycle: RecordedCycle, same: bool, now: float) -> None:
        self.cycle = cycle
        self.same = same
        self.now = now
        self.recorded: list[Event] = []


class Replay:
    """Processes a history item by item; ``outcome`` is the result so far. ``forgetful``: schedule without a cache."""

    def __init__(self, forgetful: bool = False) -> None:
        self.outcome = Outcome()
        self.cluster = Cluster()
        self.soft = Soft()
        self._policies = SitePolicies()
        self._cache = self._new_cache()
        self._forgetful = forgetful
        self._book = LimitBook(self.cluster.conf)
        self._booked = self.cluster.conf
        self._made = Plan(0)
        """What of the plan that was made last is to be accepted."""
        self._same, self._now = True, 0.0
        """Whether it was the recorded one, and when it was made."""
        self._late: list[Event] = []
        self._known = False
        """Whether the soft state is known, that is, a complete record was read."""
        self._open: _Open | None = None
        self._expected: list[Event] = []

    def _new_cache(self) -> SchedulerCache:
        cache = SchedulerCache(chunks=True)
        cache.scorer = self._policies.score
        return cache

    def run(self, items: Iterable[Item]) -> Outcome:
        """All of a history; raises ``HistoryError``."""
        for item in items:
            if isinstance(item, RecordedCycle):
                self._plan(item)
            else:
                self._event(item.seq, item.event)
        self._fold()
        return self.outcome

    def _event(self, seq: int, event: Event) -> None:
        if seq != self.cluster.version + len(self._late) + 1:
            raise HistoryError(f"event {self.cluster.version + len(self._late) + 1} is missing: {seq} comes next")
        self.outcome.events += 1
        if self._open is not None and seq == self._open.cycle.first:
            self._fold()
            self._accept(self._open.cycle)
        self._late.append(event)
        if self._open is not None and seq >= self._open.cycle.first:
            self._open.recorded.append(event)
            if len(self._open.recorded) == self._open.cycle.count:
                self._compare(self._open)
        elif not self._known and type(event) is JobDispatched:
            self.outcome.before += 1
        if len(self._late) >= TOGETHER:
            self._fold()

    def _fold(self) -> None:
        late, self._late = self._late, []
        if not late:
            return
        version = self.cluster.version
        try:
            feed.fold(self.cluster, self.soft, late)
        except (KeyError, IllegalMove) as error:
            raise HistoryError(f"an event after {version} does not fit what was before: {error!r}") from error

    def _plan(self, cycle: RecordedCycle) -> None:
        """A plan was made here: make it again; or the rest of one was accepted from here."""
        self._fold()
        if self.cluster.version != cycle.version:
            raise HistoryError(f"a plan on version {cycle.version} stands behind event {self.cluster.version}")
        if not cycle.data:
            self._open = _Open(cycle, self._same, self._now) if self._known else None
            return
        try:
            record = unpack(cycle.data)
        except ValueError as error:
            raise HistoryError(f"version {cycle.version}: {error}") from None
        self._known = self._known or record.anew
        if not self._known:
            return
        fold_record(self.soft, record)
        cache = self._new_cache() if self._forgetful else self._cache
        self._made = schedule(self.cluster, self.soft, record.now, record.local, cache)
        self._same, self._now = digest_of(self._made) == record.digest, record.now
        self._open = _Open(cycle, self._same, self._now)

    def _accept(self, cycle: RecordedCycle) -> None:
        if self._booked is not self.cluster.conf:
            self._booked = self.cluster.conf
            self._book = LimitBook(self._booked)
        events, rest = accept_part(self.cluster, self._made, cycle.at, cycle.seed, self._book)
        if len(events) < cycle.count:  # a release before accepted all of a plan at once
            events, rest = accept_plan(self.cluster, self._made, cycle.at, cycle.seed, self._book), None
        self._expected, self._made = events, rest or Plan(0)

    def _compare(self, plan: _Open) -> None:
        self._open = None
        outcome = self.outcome
        outcome.plans += 1
        outcome.decisions.update(kind_of(type(event)) for event in plan.recorded)
        pairs = list(zip(map(_encode, plan.recorded), map(_encode, self._expected), strict=False))
        at = next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))
        if at == len(plan.recorded) == len(self._expected) and plan.same:
            outcome.equal += 1
        elif outcome.first is None:
            texts = [tell(events[at]) if at < len(events) else "" for events in (plan.recorded, self._expected)]
            outcome.first = Difference(plan.cycle.version, plan.now, *texts)


def tell(event: Event) -> str:
    """An event in one line."""
    if isinstance(event, JobDispatched):
        hosts = " ".join(f"{part.host}*{part.slots}" for part in event.parts)
        return f"JobDispatched {show(event.key)} attempt {event.attempt} on {hosts}"
    key = f" {show(event.key)}" if isinstance(event, JobEvent) else ""
    return f"{kind_of(type(event))}{key}"
