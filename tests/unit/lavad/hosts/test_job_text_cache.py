"""Texts and environments in memory: bounded by their bytes, and one that cannot be read keeps no other."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lavad.core.job.spec import JobText
from lavad.hosts import job_text_cache
from lavad.hosts.job_text_cache import KEPT_BYTES, KEPT_TEXTS, JobTextCache
from lavad.store.codec import encode
from lavad.store.errors import StoreCorrupt


class Stored:
    """A store's reader."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def texts(self, jobs: list[int]) -> dict[int, JobText]:
        self.asked.append(list(jobs))
        if 13 in jobs:
            raise StoreCorrupt("the text of job 13")
        return {job: JobText(command=f"job {job}") for job in jobs}

    def env(self, name: str) -> dict[str, str]:
        return {"NAME": name}


def test_what_is_kept_is_bounded_by_bytes() -> None:
    cache = JobTextCache(cast(Any, Stored()))
    for job in range(40):
        cache.seen(job, encode(JobText(command="x", script="s" * (KEPT_TEXTS // 8))))
        cache.seen_env(str(job), {"A": "e" * (KEPT_BYTES // 8)})
        assert cache.bytes <= KEPT_TEXTS + KEPT_BYTES
    for job in range(KEPT_TEXTS // job_text_cache._ENCODED + 10):
        cache.seen(job, encode(JobText(command="")))
    assert cache.bytes <= KEPT_TEXTS + KEPT_BYTES
    cache.seen(1, encode(JobText(command="x", script="s" * (2 * KEPT_TEXTS))))
    found = asyncio.run(cache.texts([1]))
    assert len(found[1].script) == 2 * KEPT_TEXTS, "a larger one is kept alone"


def test_a_text_is_read_once_however_many_hosts_start_it() -> None:
    async def story() -> None:
        stored = Stored()
        cache = JobTextCache(cast(Any, stored))
        for _ in range(3):
            assert (await cache.texts([1, 2]))[2].command == "job 2"
            assert await cache.env("e") == {"NAME": "e"}
        assert stored.asked == [[1, 2]]
        cache.seen(1, encode(JobText(command="new")))
        assert (await cache.texts([1]))[1].command == "new"

    asyncio.run(story())


def test_a_text_that_cannot_be_read_keeps_no_other() -> None:
    found = asyncio.run(JobTextCache(cast(Any, Stored())).texts([12, 13, 14]))
    assert sorted(found) == [12, 14]


def test_a_text_that_many_jobs_have_is_there_once() -> None:
    cache = JobTextCache(cast(Any, Stored()))
    for job in (1, 2, 3):
        cache.seen(job, encode(JobText(command="a" if job < 3 else "b", cwd="/home/alice")))
    first, second, third = (cache._texts.find(job) for job in (1, 2, 3))
    assert first is second
    assert first != third


def test_what_is_in_use_stays() -> None:
    async def story() -> None:
        stored = Stored()
        cache = JobTextCache(cast(Any, stored))
        cache.seen(1, encode(JobText(command="mine")))
        for job in range(2, 40):
            cache.seen(job, encode(JobText(command="x", script=f"{job}" * (KEPT_TEXTS // 20))))
            assert (await cache.texts([1]))[1].command == "mine"
        assert stored.asked == []
        assert (await cache.texts([2]))[2].command == "job 2", "it was forgotten"

    asyncio.run(story())
