"""A cache of job texts and environments, which stay in the store: they are read in batches when jobs start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from lavad.core.job.spec import JobText
from lavad.store import codec
from lavad.store.errors import StoreCorrupt
from lavad.store.read import Reader
from proto.daemon.workers import Workers

KEPT_TEXTS = 8 << 20
KEPT_BYTES = 32 << 20
"""Of texts as the store has them, and of environments, that are kept at most; a larger one is kept alone."""
OVERHEAD = 1024
"""Bytes of an entry beside its long fields."""
_ENCODED = 128
"""The same of a text that is kept as the store has it."""
Encoded = bytes
Key = TypeVar("Key")
Kept = TypeVar("Kept")
log = logging.getLogger(__name__)


def text_bytes(text: JobText) -> int:
    """About what a text takes in memory and on the wire."""
    roles = sum([len(role.command) + env_bytes(role.env) for role in text.roles]) if text.roles else 0
    return OVERHEAD + len(text.command) + len(text.script) + len(text.input_data) + roles


def env_bytes(env: Mapping[str, str]) -> int:
    """The same of an environment."""
    return OVERHEAD + sum(len(name) + len(value) for name, value in env.items())


class _Newest(Generic[Key, Kept]):
    """What was used last, up to ``most`` bytes: what is neither among the newest half of them nor used meanwhile is forgotten."""

    def __init__(self, size: Callable[[Kept], int], most: int) -> None:
        self._size = size
        self._half = most // 2
        self._new: dict[Key, Kept] = {}
        self._old: dict[Key, Kept] = {}
        self._new_bytes = self._old_bytes = 0

    @property
    def bytes(self) -> int:
        return self._new_bytes + self._old_bytes

    def find(self, key: Key) -> Kept | None:
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.keep(key, found)
        return found

    def keep(self, key: Key, value: Kept) -> None:
        old = self._new.get(key)
        size = self._size(value) - (self._size(old) if old is not None else 0)
        if self._new and self._new_bytes + size > self._half:
            self._old, self._old_bytes = self._new, self._new_bytes
            self._new, self._new_bytes, size = {}, 0, self._size(value)
        self._new[key] = value
        self._new_bytes += size


class JobTextCache:
    """The newest texts and environments; others are read from the store in a thread of its own."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._reads = Workers("texts of jobs")
        self._busy = asyncio.Lock()
        self._texts: _Newest[int, bytes] = _Newest(lambda data: len(data) + _ENCODED, KEPT_TEXTS)
        self._last = b""
        self._envs: _Newest[str, dict[str, str]] = _Newest(env_bytes, KEPT_BYTES)

    @property
    def bytes(self) -> int:
        """What is kept of both."""
        return self._texts.bytes + self._envs.bytes

    def seen(self, job: int, data: Encoded) -> None:
        """Keep a text as the store has it."""
        if data != self._last:  # the next one is often the same
            self._last = data
        self._texts.keep(job, self._last)

    def seen_env(self, name: str, env: dict[str, str]) -> None:
        """Keep an environment that is about to be committed, if it is not here."""
        if self._envs.find(name) is None:
            self._envs.keep(name, env)

    async def texts(self, jobs: Iterable[int]) -> dict[int, JobText]:
        """The texts of these jobs; one that the store does not have, or cannot read, is left out."""
        wanted = set(jobs)
        found = {job: codec.decode_text(job, data) for job in wanted if (data := self._texts.find(job)) is not None}
        missing = sorted(wanted - found.keys())
        if missing:
            async with self._busy:
                read = await self._reads.run(self._read, missing)
            for job, text in read.items():
                self.seen(job, codec.encode(text))
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
