"""Finished jobs that a dependency condition names, read from the store before the engine decides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from lavad.core.asks import Caller
from lavad.core.cluster import Cluster
from lavad.core.decide.named import Known, LookUp
from lavad.core.rights import is_admin
from lavad.store.read import Reader

TRIES = 20
"""Between a look and the decision a job may end; then it is looked at again."""


class Lookups:
    """Tries a decision until it knows all that it needs."""

    def __init__(self, cluster: Cluster, reader: Reader, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._reader = reader
        self._clock = clock

    async def tried(self, decided: Callable[[Known], Awaitable[dict[str, Any]]], caller: Caller) -> dict[str, Any]:
        """What ``decided`` answers; raises Refused."""
        known = Known()
        for _ in range(TRIES):
            try:
                return await decided(known)
            except LookUp as missing:
                await asyncio.to_thread(self._read, missing, caller, known)
        return await decided(known)

    def _read(self, missing: LookUp, caller: Caller, known: Known) -> None:
        since = self._clock() - self._cluster.conf.params.clean_period
        user = None if is_admin(self._cluster.conf, caller) else caller.user
        for name in missing.names:
            known.names[name] = self._reader.ids_named(name, user, since)
        jobs = {*missing.jobs, *(job for name in missing.names for job in known.names[name])}
        known.jobs.update(self._reader.ended_of(sorted(jobs)))
