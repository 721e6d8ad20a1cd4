"""Texts and environments in memory: bounded by their bytes, and one that cannot be read keeps no other."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from lavad.core.job.spec import JobText
from lavad.hosts import job_text_cache
from lavad.hosts.job_text_cache import KEPT_BYTES, JobTextCache
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
        cache.seen(job, JobText(command="x", script="s" * (KEPT_BYTES // 8)))
        cache.seen_env(str(job), {"A": "e" * (KEPT_BYTES // 8)})
        assert cache.bytes <= 2 * KEPT_BYTES
    many = KEPT_BYTES // job_text_cache.OVERHEAD
    for job in range(many + 10):
        cache.seen(job, JobText(command=""))
    assert cache.bytes <= 2 * KEPT_BYTES


def test_a_text_is_read_once_however_many_hosts_start_it() -> None:
    async def story() -> None:
        stored = Stored()
        cache = JobTextCache(cast(Any, stored))
        for _ in range(3):
            assert (await cache.texts([1, 2]))[2].command == "job 2"
            assert await cache.env("e") == {"NAME": "e"}
        assert stored.asked == [[1, 2]]
        cache.seen(1, JobText(command="new"))
        assert (await cache.texts([1]))[1].command == "new"

    asyncio.run(story())


def test_a_text_that_cannot_be_read_keeps_no_other() -> None:
    found = asyncio.run(JobTextCache(cast(Any, Stored())).texts([12, 13, 14]))
    assert sorted(found) == [12, 14]


def test_texts_that_are_alike_share_what_is_long() -> None:
    cache = JobTextCache(cast(Any, Stored()))
    first, second = (msgspec.json.decode(b'{"command":"a","cwd":"/home/alice"}', type=JobText) for _ in range(2))
    cache.seen(1, first)
    cache.seen(2, second)
    assert first.cwd is second.cwd
