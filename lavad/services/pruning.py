"""Removes old history from the store while the master works, in small steps with pauses, so that commits hardly wait for it.

What is old: what was over LAVA_HISTORY_DAYS ago, and the oldest of more than LAVA_HISTORY_JOBS finished jobs; never what ended
within CLEAN_PERIOD, what a live job names, or what lsb.acct does not have yet where LSB_SHAREDIR is set.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import TypeVar

import sqlalchemy as sa

from lavad.engine import Engine
from lavad.lsb import position
from lavad.services.lookups import Lookups
from lavad.store import prune
from lavad.store.errors import OutcomeUnknown, StoreRefused
from lavad.store.read import Reader
from lavad.store.writer import Store
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST, EVERY = 60.0, 600.0
"""Seconds until the first round, and between rounds."""
SHARE = 2.0
"""A pause is so many times as long as the step before it."""
SHORTEST = 0.005
ANSWERS_KEPT = 86_400.0
DAY = 86_400.0
MARGIN = 60.0


class Pruning:
    """The rounds of one master. ``shared``: LSB_SHAREDIR, "": lsb.acct is not written."""

    def __init__(
        self, engine: Engine, store: Store, reader: Reader, lookups: Lookups, epoch: int, shared: str, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._store = store
        self._reader = reader
        self._lookups = lookups
        self._epoch = epoch
        self._shared = shared
        self._clock = clock
        self._workers = Workers("old history")

    async def run(self) -> None:
        """Serve for ever."""
        await asyncio.sleep(FIRST)
        while True:
            await self.tried_round()
            await asyncio.sleep(EVERY)

    async def tried_round(self) -> None:
        """One round; where the store refuses it, the rest stays for the next."""
        try:
            await self._round()
        except (StoreRefused, OutcomeUnknown, OSError) as error:
            log.warning("old history stays: %s", error)

    async def _round(self) -> None:
        now = self._clock()
        await self._repeat(partial(prune.drop_answers, before=now - ANSWERS_KEPT))
        await self._repeat(prune.drop_gone)
        await self._retire(now)
        before = await self._workers.run(self._before, now)
        if before > 0:
            # from here on no ask finds what is about to go, and those that found it are answered first
            await self._lookups.forget(before)
            await self._step(partial(prune.note, before=before))
            jobs = await self._jobs(before)
            events = await self._repeat(partial(prune.drop_site_events, before=before))
            specs = await self._specs(before)
            if jobs or events:
                log.info("history: %d rows of jobs, %d events of the site and %d specs are removed", jobs, events, specs)
        await self._repeat(prune.shrink)

    def _before(self, now: float) -> float:
        """What was over before this time goes; 0.0: nothing."""
        params = self._engine.cluster.conf.params
        found = now - params.lava_history_days * DAY if params.lava_history_days else 0.0
        if params.lava_history_jobs:
            found = max(found, self._reader.nth_newest(params.lava_history_jobs))
        found = min(found, now - params.clean_period - MARGIN)
        if self._shared and found > 0:
            found = min(found, self._written())
        # a store that is younger is to have all for a replay, and no note that some of it may be gone
        return found if found > 0 and self._reader.began_before(found) else 0.0

    def _written(self) -> float:
        """The time up to which lsb.events and lsb.acct are surely on disk."""
        cluster = self._engine.cluster
        try:
            seq = position.read(position.folder_of(self._shared, cluster.conf.cluster)).get("seq", 0)
        except OSError:
            seq = 0
        if seq >= cluster.version:
            return self._clock()
        return self._reader.event_time(seq) - MARGIN

    async def _jobs(self, before: float) -> int:
        rows = 0
        for drop in (prune.drop_jobs, prune.drop_arrays):
            after: prune.Place | None = prune.START
            while after is not None:
                # a condition can come to name an old job only by a look-up, and look-ups no longer find those that are due
                kept = frozenset(self._engine.cluster.conditions.named)
                step = await self._step(partial(drop, before=before, kept=kept, after=after))
                rows, after = rows + step.rows, step.after
        return rows

    async def _retire(self, now: float) -> None:
        async with self._engine.quiet:
            cluster = self._engine.cluster
            live, upto = frozenset(cluster.specs.rows), cluster.next_spec
        after: int | None = 0
        while after is not None:
            after = await self._step(partial(prune.retire_specs, live=live, now=now, after=after, upto=upto))

    async def _specs(self, before: float) -> int:
        """Specs that were retired before this time and that nothing old which is still there names."""
        named = await self._workers.run(self._specs_named, before)
        gone = 0
        after: int | None = 0
        while after is not None:
            found, after = await self._step(partial(prune.drop_specs, before=before, named=named, after=after))
            gone += found
        return gone

    def _specs_named(self, before: float) -> frozenset[int]:
        return frozenset().union(*self._reader.specs_named(before))

    async def _repeat(self, drop: Callable[[sa.Connection], int]) -> int:
        rows = 0
        while gone := await self._step(drop):
            rows += gone
        return rows

    async def _step(self, work: Callable[[sa.Connection], T]) -> T:
        began = monotonic()
        found: T = await self._workers.run(self._store.change, self._epoch, work)
        await asyncio.sleep(max(SHORTEST, SHARE * (monotonic() - began)))
        return found
