"""A cache of job texts and environments, which stay in the store: they are read in batches when jobs start."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from lavad.core.job.spec import JobText
from lavad.store.read import Reader
from proto.workers import Workers

KEPT_TEXTS = 1024
KEPT_ENVS = 256


class JobTextCache:
    """The newest texts and environments; others are read from the store in a thread of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reads = Workers("texts of jobs")
        self._busy = asyncio.Lock()
        self._texts: OrderedDict[int, JobText] = OrderedDict()
        self._envs: OrderedDict[str, dict[str, str]] = OrderedDict()

    def seen(self, job: int, text: JobText) -> None:
        """Keep a text that was just committed."""
        self._texts[job] = text
        if len(self._texts) > KEPT_TEXTS:
            self._texts.popitem(last=False)

    def seen_env(self, name: str, env: dict[str, str]) -> None:
        """Keep an environment that is about to be committed."""
        self._envs[name] = env
        if len(self._envs) > KEPT_ENVS:
            self._envs.popitem(last=False)

    async def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        """The texts of these jobs (those that exist)."""
        wanted = set(jobs)
        found = {job: self._texts[job] for job in wanted if job in self._texts}
        missing = sorted(wanted - found.keys())
        if missing:
            async with self._busy:
                found |= await self._reads.run(self._reader.texts, missing)
        return found

    async def env(self, name: str) -> dict[str, str]:
        """An environment by its hash ({} if it is unknown)."""
        known = self._envs.get(name)
        if known is None:
            async with self._busy:
                known = await self._reads.run(self._reader.env, name) or {}
            self.seen_env(name, known)
        return known
