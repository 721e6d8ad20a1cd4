"""Texts of jobs on their way to hosts: each once a stream, in messages split by bytes, and few large ones at a time.

Rule: what a text takes before it is written is counted for all hosts together; a small one is not, so that it never waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from lavad.core.lang.ids import job_of
from lavad.hosts.job_text_cache import JobTextCache, env_bytes, text_bytes
from lavad.hosts.orders import LastTexts, Texts, text_key
from lavad.hosts.room import Room
from lavad.hosts.sessions import Session
from lavad.store.errors import StoreCorrupt
from lavad.wire import encode
from lavad.wire.encode import TextMessage

FULL_MESSAGE = 1 << 20
"""Bytes from which a message takes no more texts or orders."""
LARGEST = 100 << 20
"""Bytes of one text; an agent takes messages of 128 MB."""
LARGE = 256 << 10
ON_THE_WAY = 128 << 20
"""Bytes of large texts that are being written to all hosts together."""
AT_ONCE = 32
"""Texts that are read from the store at a time."""
READERS = 4
"""Hosts for which texts are read at a time."""
log = logging.getLogger(__name__)


class Missing(NamedTuple):
    """What became of the texts that a stream lacked."""

    texts: Sequence[TextMessage]
    """Those that are still to be sent, ahead of the orders."""
    size: int
    """Their bytes, about."""
    failed: Mapping[int, str]
    """The keys of those that the stream does not get, with why no host will, "" where another try may do."""


NOTHING = Missing((), 0, {})


class TextSender:
    """Sends texts to streams that lack them."""

    def __init__(self, cluster: Cluster, texts: JobTextCache) -> None:
        self._cluster = cluster
        self._texts = texts
        self._last = LastTexts()
        self._room = Room(ON_THE_WAY)
        self._readers = asyncio.Semaphore(READERS)

    async def send_missing(self, session: Session, starts: list[Job]) -> Missing:
        """Send the texts that these jobs need and the stream lacks, but for the last, which are to go with the orders."""
        needed = {text_key(self._cluster, job): job for job in starts}
        missing = session.missing_texts(needed)
        if not missing:
            return NOTHING
        batch = _Batch(session, needed, Texts(self._cluster, session, self._last))
        for number in session.trim_texts(needed):
            batch.add(encode.no_text(number), 0)
        for at in range(0, len(missing), AT_ONCE):
            async with self._readers:
                await self._send(batch, missing[at : at + AT_ONCE], starts)
        return batch.left()

    async def _send(self, batch: _Batch, keys: list[int], starts: list[Job]) -> None:
        """Send the texts with these keys, or note why not."""
        session = batch.session
        try:
            found = await self._texts.texts({job_of(key) for key in keys})
        except Exception:
            # the store may be away: the orders are sent again when they are overdue
            log.exception("host %s: the texts of %d jobs could not be read", session.host, len(keys))
            batch.fail(keys, "")
            return
        for key in keys:
            text = found.get(job_of(key))
            if text is None:
                log.error("host %s: the store has no text of job %d; it cannot start", session.host, job_of(key))
                batch.fail([key], "the store has no text of the job that can be read")
                continue
            try:
                env = await self._texts.env(text.env) if text.env else {}
            except Exception as error:
                log.exception("host %s: the environment of job %d", session.host, job_of(key))
                batch.fail([key], str(error) if isinstance(error, StoreCorrupt) else "")
                continue
            size = text_bytes(text) + batch.env_size(text.env, env)
            if size > LARGE or batch.size > FULL_MESSAGE:
                batch.send()
                await session.room()
            taken = await self._room.take(size) if size > LARGE else 0
            if not self._add(batch, key, text, env, size, starts):
                self._room.give_back(taken)
            elif taken:
                batch.send(partial(self._room.give_back, taken))

    def _add(self, batch: _Batch, key: int, text: JobText, env: Mapping[str, str], size: int, starts: list[Job]) -> bool:
        """Add a text to the batch; False where its job has ended meanwhile, or no message can be made of it."""
        job = self._find_live(key, chain((batch.needed[key],), starts))
        if job is None:
            return False
        try:
            batch.session.assign_number(key, batch.needed, size)
            message = batch.texts.message(job, text, env)
            if size > LARGE and (found := len(message)) > LARGEST:
                raise ValueError(f"its text has {found} bytes, at most {LARGEST}")
        except Exception as error:
            # one job must not prevent others on its host from starting
            log.exception("host %s: the text of job %d", batch.session.host, job_of(key))
            batch.fail([key], f"{type(error).__name__}: {error}")
            return False
        batch.add(message, size)
        return True

    def _find_live(self, key: int, starts: Iterable[Job]) -> Job | None:
        """One of the jobs with this text that is still live."""
        for job in starts:
            if self._cluster.find_job(job.key) is not None and text_key(self._cluster, job) == key:
                return job
        return None


class _Batch:
    """Texts that go to a stream in one message, for jobs by the key of their text."""

    def __init__(self, session: Session, needed: Mapping[int, Job], texts: Texts) -> None:
        self.session = session
        self.needed = needed
        self.texts = texts
        self.size = 0
        self.failed: dict[int, str] = {}
        self._texts: list[TextMessage] = []
        self._envs: dict[str, int] = {}

    def env_size(self, name: str, env: Mapping[str, str]) -> int:
        """Bytes of an environment, which many jobs have."""
        size = self._envs.get(name)
        if size is None:
            size = self._envs[name] = env_bytes(env)
        return size

    def add(self, text: TextMessage, size: int) -> None:
        """A text of about so many bytes."""
        self._texts.append(text)
        self.size += size

    def fail(self, keys: Iterable[int], why: str) -> None:
        """The stream does not get these."""
        for key in keys:
            self.session.drop_text(key)
            self.failed[key] = why

    def send(self, written: Callable[[], None] = lambda: None) -> None:
        """Put what was added on the stream."""
        if self._texts:
            self.session.send(encode.batch((), self._texts), self.size, written)
            self._texts, self.size = [], 0

    def left(self) -> Missing:
        """What was added and not sent."""
        return Missing(self._texts, self.size, self.failed)
