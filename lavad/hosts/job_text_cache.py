"""A cache of job texts and environments, which stay in the store: they are read in batches when jobs start."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from lavad.core.cluster.shared import Shared
from lavad.core.job.spec import JobText
from lavad.store.errors import StoreCorrupt
from lavad.store.read import Reader
from proto.workers import Workers

KEPT_BYTES = 32 << 20
"""Of texts, and of environments, that are kept; a larger one is kept alone."""
OVERHEAD = 1024
"""Bytes of an entry beside its long fields."""
_ALIKE = ("command", "env", "cwd", "home", "shell", "output", "error", "input")
"""What many texts have in common."""
Key = TypeVar("Key")
Kept = TypeVar("Kept")
log = logging.getLogger(__name__)


def text_bytes(text: JobText) -> int:
    """About what a text takes in memory and on the wire."""
    roles = sum(len(role.command) + env_bytes(role.env) for role in text.roles)
    return OVERHEAD + len(text.command) + len(text.script) + len(text.input_data) + roles


def env_bytes(env: Mapping[str, str]) -> int:
    """The same of an environment."""
    return OVERHEAD + sum(len(name) + len(value) for name, value in env.items())


class _Newest(Generic[Key, Kept]):
    """What was used last, up to KEPT_BYTES."""

    def __init__(self, size: Callable[[Kept], int]) -> None:
        self._size = size
        self._rows: OrderedDict[Key, Kept] = OrderedDict()
        self.bytes = 0

    def find(self, key: Key) -> Kept | None:
        found = self._rows.get(key)
        if found is not None:
            self._rows.move_to_end(key)
        return found

    def keep(self, key: Key, value: Kept) -> None:
        old = self._rows.pop(key, None)
        self.bytes += self._size(value) - (self._size(old) if old is not None else 0)
        self._rows[key] = value
        while len(self._rows) > 1 and self.bytes > KEPT_BYTES:
            self.bytes -= self._size(self._rows.popitem(last=False)[1])


class JobTextCache:
    """The newest texts and environments; others are read from the store in a thread of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reads = Workers("texts of jobs")
        self._busy = asyncio.Lock()
        self._texts: _Newest[int, JobText] = _Newest(text_bytes)
        self._envs: _Newest[str, dict[str, str]] = _Newest(env_bytes)
        self._shared = Shared()

    @property
    def bytes(self) -> int:
        """What is kept of both."""
        return self._texts.bytes + self._envs.bytes

    def seen(self, job: int, text: JobText) -> None:
        """Keep a text that was just committed."""
        self._shared.share(text, *_ALIKE)
        self._texts.keep(job, text)

    def seen_env(self, name: str, env: dict[str, str]) -> None:
        """Keep an environment that is about to be committed."""
        self._envs.keep(name, env)

    async def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        """The texts of these jobs; one that the store does not have, or cannot read, is left out."""
        wanted = set(jobs)
        found = {job: text for job in wanted if (text := self._texts.find(job)) is not None}
        missing = sorted(wanted - found.keys())
        if missing:
            async with self._busy:
                read = await self._reads.run(self._read, missing)
            for job, text in read.items():
                self._texts.keep(job, text)
            found |= read
        return found

    def _read(self, jobs: Sequence[int]) -> dict[int, JobText]:
        try:
            return self._reader.texts(jobs)
        except StoreCorrupt as error:
            if len(jobs) == 1:
                log.error("%s", error)
                return {}
        return {job: text for one in jobs for job, text in self._read([one]).items()}

    async def env(self, name: str) -> dict[str, str]:
        """An environment by its hash ({} if it is unknown)."""
        known = self._envs.find(name)
        if known is None:
            async with self._busy:
                known = await self._reads.run(self._reader.env, name) or {}
            self.seen_env(name, known)
        return known
