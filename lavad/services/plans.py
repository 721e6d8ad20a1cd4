"""Plans of the scheduler: valid proposals are committed, pend reasons are passed on to the listings.

Rule: what cannot be recorded of a plan is tried piece by piece, so that one job keeps no other from starting. A job whose start
cannot be recorded is held, and shows SYS_UNABLE as its reason while it cannot be held either.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.placement.placement import accept
from lavad.core.lang.asks import Faulty, Refused
from lavad.core.lang.ids import show
from lavad.core.plan.plan import Placement, Plan
from lavad.core.plan.volatile import Soft, SoftUpdate, update
from lavad.core.site.limit_book import LimitBook
from lavad.core.site.pend_reason import PendReason
from lavad.engine import Engine
from lavad.replica import protocol as feed
from lavad.replica.publisher import AwaitedPlan
from lavad.replica.replicas import QueryProcess, ReplicaProcess
from lavad.replica.watch import watch

UNRECORDED = "its start could not be recorded"
ASIDE = 60.0
"""Seconds for which a job is not started again whose start could not be recorded."""
log = logging.getLogger(__name__)


class Acceptance:
    """Has plans accepted by the engine."""

    def __init__(self, engine: Engine, planner: Callable[[], int] = lambda: 0) -> None:
        """``planner``: number of the process that plans; a plan of an earlier one may be of changes that were undone."""
        self._engine = engine
        self._planner = planner
        self._of = 0
        self._configured = 0
        """Version of the newest configuration: a plan made before it is dropped."""
        self._limits = LimitBook(engine.cluster.conf)
        self._aside: dict[int, float] = {}
        """Jobs whose start could not be recorded, with the times when it is tried again."""
        engine.listen(self._committed)

    def reasons(self, plan: Plan) -> dict[int, int]:
        """Pend reasons of single jobs: those of the plan, and of the jobs that are set aside."""
        return {**plan.why_job, **dict.fromkeys(self._aside, PendReason.SYS_UNABLE)} if self._aside else plan.why_job

    async def accept(self, plan: Plan) -> bool:
        """Accept the plan, in parts that others do not wait for; whether its recorded inputs are stored."""
        self._of = self._planner()
        if self._aside:
            plan = self._without_aside(plan)
        kept = False
        rest: Plan | None = plan
        while rest is not None:
            plan = rest
            try:
                stored, rest = await self._ask(plan)
            except Faulty as fault:
                log.error("a plan could not be recorded, and is tried piece by piece: %s", fault.text)
                await self._by_pieces(plan)
                return kept
            except Refused as refusal:
                log.error("plan dropped: %s", refusal.text)
                return kept
            kept = kept or stored
        return kept

    async def _by_pieces(self, plan: Plan) -> None:
        """One proposal after the other; jobs whose start cannot be recorded are held."""
        for piece in pieces(plan):
            try:
                await self._ask(piece)
            except Faulty as fault:
                log.error("a part of a plan is dropped: %s: %r", fault.text, piece)
                for placement in piece.placements:
                    await self._hold(placement)
            except Refused as refusal:
                log.error("plan dropped: %s", refusal.text)
                break

    def _without_aside(self, plan: Plan) -> Plan:
        now = self._engine.clock()
        self._aside = {key: until for key, until in self._aside.items() if until > now and self._waits(key)}
        placements = tuple(one for one in plan.placements if one.key not in self._aside)
        preemptions = tuple(one for one in plan.preemptions if one.beneficiary not in self._aside)
        chunks = tuple(replace(one, keys=tuple(key for key in one.keys if key not in self._aside)) for one in plan.chunks)
        return replace(plan, placements=placements, preemptions=preemptions, chunks=chunks)

    def _waits(self, key: int) -> bool:
        job = self._engine.cluster.find_job(key)
        return job is not None and job.run is None

    async def _hold(self, placement: Placement) -> None:
        key = placement.key
        self._aside[key] = self._engine.clock() + ASIDE
        try:
            await self._engine.ask(lambda _, now: Decided(events=[ev.JobHeld(at=now, key=key, why=UNRECORDED)]))
        except Refused as refusal:
            log.error("job %s cannot be held: %s", show(key), refusal.text)
        else:
            log.error("job %s is held, as its start could not be recorded; bresume has it tried again", show(key))

    async def _ask(self, plan: Plan) -> tuple[bool, Plan | None]:
        """(whether the inputs of a first part of the plan are stored, the rest of the plan)."""
        seed = secrets.token_hex(6)
        rest: Plan | None = None

        def decide(cluster: Cluster, now: float) -> Decided:
            nonlocal rest
            if self._planner() != self._of:
                return Decided()
            decided, rest = accept(cluster, plan, now, seed, self._limits, self._configured)
            return decided

        return bool((await self._engine.ask(decide)).get("kept")), rest

    def _committed(self, committed: Committed) -> None:
        if ev.Configured in committed.kinds:
            self._configured = committed.version
            self._limits = LimitBook(self._engine.cluster.conf)


def pieces(plan: Plan) -> Iterator[Plan]:
    """The proposals of a plan one by one, each with what belongs to it; nothing is recorded of how they came about."""
    alone = Plan(version=plan.version)
    for suspension in plan.suspensions:
        yield replace(alone, suspensions=(suspension,))
    for key in plan.releases:
        yield replace(alone, releases=(key,))
    for placement in plan.placements:
        victims = tuple(one for one in plan.preemptions if one.beneficiary == placement.key)
        yield replace(alone, placements=(placement,), preemptions=victims, run_limits=plan.run_limits)
    for chunks in plan.chunks:
        for key in chunks.keys:
            yield replace(alone, placements=(Placement(key, (chunks.part,), chunks.spec),))
    for growth in plan.growths:
        yield replace(alone, growths=(growth,))
    for hold in plan.holds:
        yield replace(alone, holds=(hold,))
    for key in plan.deadlocked:
        yield replace(alone, deadlocked=(key,))
    for extension in plan.extensions:
        yield replace(alone, extensions=(extension,))
    for key in plan.resumes:
        yield replace(alone, resumes=(key,))


class Plans:
    """Receives the plans of the scheduler's process, which makes the next one after each is acknowledged."""

    def __init__(
        self,
        engine: Engine,
        scheduler: ReplicaProcess,
        queries: QueryProcess,
        soft: Soft,
        awaited: AwaitedPlan,
        seen: Sequence[Callable[[Plan], None]],
    ) -> None:
        """``awaited``: the plan that a turn of the engine waits for; ``seen``: called with each plan, to count it."""
        self._acceptance = Acceptance(engine, lambda: scheduler.started)
        self._scheduler = scheduler
        self._queries = queries
        self._soft = soft
        self._awaited = awaited
        self._seen = seen

    async def run(self) -> None:
        """Serve for ever."""
        watching = asyncio.create_task(watch(self._scheduler, "scheduler", works_long=True))
        try:
            await self._scheduler.run(self._take, self._awaited.forget)
        finally:
            watching.cancel()

    async def _take(self, plan: feed.FromReplica) -> None:
        if not isinstance(plan, Plan):
            return
        for seen in self._seen:
            seen(plan)
        self._awaited.came(plan)  # who waits for it goes on after it is handed in
        kept = plan.decides and await self._acceptance.accept(plan)
        self._awaited.done()
        await asyncio.sleep(0)  # the orders that are due go out first
        news = SoftUpdate(why=plan.why, why_job=self._acceptance.reasons(plan), promises=plan.promises)
        update(self._soft, news)
        self._queries.process.send_frame(feed.frame(news))
        if plan.decides:
            self._scheduler.send(feed.PlanDone(version=plan.version, kept=kept))
