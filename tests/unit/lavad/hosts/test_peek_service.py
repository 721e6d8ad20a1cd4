"""Output of a job, asked of its host: the whole or its end, and a sign of life while the job writes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Peek, Refused
from lavad.core.lang.states import JobState
from lavad.hosts import peek_requests, peek_service
from lavad.hosts.peek_requests import PeekRequests
from lavad.hosts.peek_service import PeekService
from lavad.hosts.sessions import Session, Sessions
from lavad.wire.records import PeekData
from proto import agent_pb2 as pb
from proto.daemon.workers import Workers
from tests.support.stores.memory_reader import MemoryReader
from tests.support.worlds.bench import ALICE, BOB, Bench
from web.master import PATIENCE

TRAILER = {"out": "<< output from stdout >>\n"}


class Host:
    """What a job writes there, and how its agent is asked for it."""

    def __init__(self, output: bytes) -> None:
        self.output = output
        self.asked: list[int] = []
        self.bench = Bench()
        self.key = self.bench.placed(user=ALICE.user)
        (name,) = self.bench.running()[self.key]
        self.session = Session(name, 0)

    @asynccontextmanager
    async def service(self) -> AsyncIterator[PeekService]:
        sessions, peeks, reader = Sessions(), PeekRequests(), MemoryReader()
        sessions.rows[self.session.host] = self.session
        reader.kept_texts[self.key] = JobText(command="a")
        agent = asyncio.ensure_future(self._answer(peeks))
        try:
            yield PeekService(self.bench.cluster, sessions, peeks, reader, Workers("reads"))  # type: ignore[arg-type]
        finally:
            agent.cancel()

    async def _answer(self, peeks: PeekRequests) -> None:
        while (sent := await self.session.outgoing.get()) is not None:
            peek = pb.ToAgent.FromString(sent.message).peek
            self.asked.append(peek.offset)
            data = self.output[peek.offset : peek.offset + peek.limit]
            peeks.answered(self.session, PeekData(peek.id, data, len(self.output), ""))


def shown(host: Host, job: str | None = None, caller: Caller = ALICE, **ask: Any) -> list[Any]:
    """``job``: without it that of the host."""

    async def main() -> list[Any]:
        async with host.service() as service:
            peek = Peek(job=str(host.key) if job is None else job, **ask)
            return [piece async for piece in service.answer(peek, caller)]

    return asyncio.run(main())


def test_bpeek_shows_all_and_says_what_it_was() -> None:
    assert shown(Host(b"all of it\n")) == [{"out": "all of it\n"}, TRAILER, {"exit": 0}]


@pytest.mark.parametrize(
    ("size", "reads"), [(0, [0]), (10, [0]), (100, [0]), (3 * peek_requests.PIECE, [0, 3 * peek_requests.PIECE - 100])]
)
def test_the_end_is_read_alone_and_nothing_is_added_to_it(size: int, reads: list[int]) -> None:
    host = Host(bytes(65 + at % 26 for at in range(size)))
    *pieces, end = shown(host, last=100)
    assert end == {"exit": 0}
    assert "".join(piece["out"] for piece in pieces).encode() == host.output[-100:]
    assert host.asked == reads


def test_of_an_array_an_element_is_to_be_named() -> None:
    """Also once it is over; of an element that has not run the answer is that."""
    host = Host(b"")
    bench = host.bench
    live = bench.bsub(J="a[2-4]")["job"]
    over = replace(bench.cluster.arrays.rows[live], job=77)

    async def refused(word: str) -> str:
        async with host.service() as service:
            service.reader.arrays[77] = over  # type: ignore[attr-defined]
            with pytest.raises(Refused) as found:
                await anext(service.answer(Peek(job=word), ALICE))
            return str(found.value)

    words = [f"{live}", "77", f"{live}[3]", f"{live}[9]", "78", "77[9]"]
    assert [asyncio.run(refused(word)) for word in words] == [
        f"Job <{live}> is an array: name one of its elements, as {live}[2]",
        "Job <77> is an array: name one of its elements, as 77[2]",
        f"Job <{live}[3]> : Not yet started.",
        f"Job <{live}[9]> is not found",
        "Job <78> is not found",
        "Job <77[9]> is not found",
    ]


def test_while_the_job_is_silent_there_is_a_sign_of_life_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers give up after ``PATIENCE`` of nothing; the host may take its own time to answer."""
    assert peek_service.QUIET + peek_service.FOLLOW + peek_requests.PATIENCE < PATIENCE
    monkeypatch.setattr(peek_service, "QUIET", 0.0)
    monkeypatch.setattr(peek_service, "FOLLOW", 0.0)
    host = Host(b"begun\n")

    async def main() -> None:
        async with host.service() as service:
            pieces = service.answer(Peek(job=str(host.key), follow=True), ALICE)
            found = [await asyncio.wait_for(anext(pieces), 30) for _ in range(3)]
            assert found == [{"out": "begun\n"}, {"out": ""}, {"out": ""}]
            host.output += b"more\n"
            while (piece := await asyncio.wait_for(anext(pieces), 30)) == {"out": ""}:
                pass
            assert piece == {"out": "more\n"}

    asyncio.run(main())


def test_what_comes_after_the_end_that_was_asked_for_is_followed() -> None:
    host = Host(b"x" * 500 + b"tail")

    async def main() -> None:
        async with host.service() as service:
            pieces = service.answer(Peek(job=str(host.key), follow=True, last=4), ALICE)
            assert await asyncio.wait_for(anext(pieces), 30) == {"out": "tail"}
            host.output += b"y" * 500
            assert await asyncio.wait_for(anext(pieces), 30) == {"out": "y" * 500}

    asyncio.run(main())


def test_without_a_job_it_shows_the_callers_newest_unfinished_one() -> None:
    host = Host(b"of the first")
    assert shown(host, "") == [{"out": "of the first"}, TRAILER, {"exit": 0}]
    with pytest.raises(Refused, match="No unfinished job found"):
        shown(host, "", BOB)
    newest = host.bench.placed("PEND", user=ALICE.user)
    with pytest.raises(Refused, match=f"Job <{newest}> : Not yet started"):
        shown(host, "")


def test_a_job_that_is_about_to_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """bjobs says RUN once it has its hosts: bpeek right after it said that it had not started."""
    host = Host(b"begun\n")
    bench = host.bench
    soon = bench.submit(user=ALICE.user)
    bench.step()
    (name,) = bench.running()[soon]
    assert name == host.session.host
    assert bench.job(soon).state is JobState.RUN
    looks = iter(range(3))

    async def pause(seconds: float) -> None:
        if next(looks) == 2:
            bench.start(soon, name)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "sleep", pause)
        assert shown(host, str(soon)) == [{"out": "begun\n"}, TRAILER, {"exit": 0}]
    late = bench.submit(user=ALICE.user)
    bench.step()
    monkeypatch.setattr(peek_service, "STARTS", 0.1)
    with pytest.raises(Refused, match="Not yet started"):
        shown(host, str(late))
