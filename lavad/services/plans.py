"""Plans of the scheduler: valid proposals are committed, pend reasons are passed on to the listings."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.placement.placement import accept
from lavad.core.lang.asks import Refused
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft, SoftUpdate, update
from lavad.core.site.limit_book import LimitBook
from lavad.engine import Committed, Engine
from lavad.replica import protocol as feed
from lavad.replica.replicas import QueryProcess, ReplicaProcess

log = logging.getLogger(__name__)


class Plans:
    """Receives the plans of the scheduler's process, which makes the next one after each is acknowledged."""

    def __init__(
        self, engine: Engine, scheduler: ReplicaProcess, queries: QueryProcess, soft: Soft, seen: Sequence[Callable[[Plan], None]]
    ) -> None:
        """``seen``: called with each plan, to count it."""
        self._engine = engine
        self._scheduler = scheduler
        self._queries = queries
        self._soft = soft
        self._seen = seen
        self._configured = 0
        """Version of the newest configuration: a plan made before it is dropped."""
        self._limits = LimitBook(engine.cluster.conf)
        engine.listen(self._committed)

    async def run(self) -> None:
        """Serve for ever."""
        await self._scheduler.run(self._take, lambda: None)

    async def _take(self, plan: feed.FromReplica) -> None:
        if not isinstance(plan, Plan):
            return
        for seen in self._seen:
            seen(plan)
        kept = plan.decides and await self._accept(plan)
        news = SoftUpdate(why=plan.why, why_job=plan.why_job, promises=plan.promises)
        update(self._soft, news)
        self._queries.process.send_frame(feed.frame(news))
        self._scheduler.send(feed.PlanDone(version=plan.version, kept=kept))

    async def _accept(self, plan: Plan) -> bool:
        """Accept the plan; whether its recorded inputs are stored."""
        seed = secrets.token_hex(6)

        def decide(cluster: Cluster, now: float) -> Decided:
            return accept(cluster, plan, now, seed, self._limits, self._configured)

        try:
            return bool((await self._engine.ask(decide)).get("kept"))
        except Refused as refusal:
            log.error("plan dropped: %s", refusal.text)
            return False

    def _committed(self, committed: Committed) -> None:
        if any(isinstance(event, ev.Configured) for event in committed.events):
            self._configured = committed.version
            self._limits = LimitBook(self._engine.cluster.conf)
