"""The agent's stream to the master: connecting and greeting, and the reports, which are kept until acknowledged.

Rule: a master with a lower epoch than one seen before is not obeyed. Reports are numbered from 1 on each stream.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from agent.launch.site import Site
from agent.master.channel import Link, NotMaster, connect, why_no_handshake
from proto import agent_pb2 as pb
from proto import agent_pb2_grpc as pb_grpc

Call = grpc.aio.StreamStreamCall[pb.FromAgent, pb.ToAgent]
GREETING_WAIT = 5.0
FULL_MESSAGE = 1 << 20
"""Bytes of reports from which a message takes no more; far below what the master receives."""
KEPT_FINAL = 10_000
"""How many final reports are kept of attempts that were refused, or killed before their start order came."""


class Session:
    """A stream to a master. ``welcome``: its answer to Hello."""

    def __init__(self, target: str, link: Link, call: Call, stub: pb_grpc.AgentsStub) -> None:
        self.target = target
        self.stub = stub
        self.welcome = pb.Welcome()
        self._link = link
        self._call = call

    async def greet(self, hello: pb.Hello) -> None:
        """Send Hello and wait for Welcome; NotMaster when none comes within GREETING_WAIT seconds."""
        try:
            async with asyncio.timeout(GREETING_WAIT):
                await self._call.write(pb.FromAgent(hello=hello))
                answer = await self._call.read()
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as e:
            raise NotMaster(_why(e)) from None
        except TimeoutError:
            raise NotMaster("no answer") from None
        if not isinstance(answer, pb.ToAgent) or answer.WhichOneof("kind") != "welcome":
            raise NotMaster(await _ending(self._call))
        self.welcome = answer.welcome

    async def messages(self) -> AsyncIterator[pb.ToAgent]:
        """The master's messages, until the stream ends."""
        try:
            while True:
                message = await self._call.read()
                if not isinstance(message, pb.ToAgent):
                    return
                yield message
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return

    async def send(self, message: pb.FromAgent) -> bool:
        """Send one message; False when the stream has ended."""
        try:
            await self._call.write(message)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return False
        return True

    async def close(self) -> None:
        """End the stream."""
        self._call.cancel()
        await self._link.close()


async def open_session(target: str, site: Site, hello: pb.Hello) -> Session:
    """Connect to ``target`` (HOST:PORT, or ``unix:`` and a path) and greet it; NotMaster when there is no master."""
    link = await connect(target, site)
    stub = pb_grpc.AgentsStub(link.channel)  # type: ignore[no-untyped-call]
    session = Session(target, link, stub.Session(metadata=metadata(site)), stub)
    try:
        await session.greet(hello)
    except NotMaster as e:
        await session.close()
        raise NotMaster(await why_no_handshake(site, str(e))) from None
    except BaseException:
        await session.close()
        raise
    return session


def metadata(site: Site) -> tuple[tuple[str, str], ...]:
    """Which host's agent this is: believed on the socket of one machine, where only this account and root can connect."""
    return (("lava-host", site.host),)


async def _ending(call: Call) -> str:
    try:
        async with asyncio.timeout(1.0):
            return f"{(await call.code()).name}: {await call.details()}"
    except TimeoutError:
        return "no Welcome"


def _why(e: Exception) -> str:
    return f"{e.code().name}: {e.details()}" if isinstance(e, grpc.aio.AioRpcError) else str(e)


class Outbox:
    """Reports until the master has committed them. ``final``: the last reports of attempts that must not be started, by uid."""

    def __init__(self) -> None:
        self.final: dict[str, pb.Report] = {}
        self._waiting: list[pb.Report] = []
        self._unacked: deque[pb.Report] = deque()
        self._last = 0

    def put(self, report: pb.Report) -> None:
        """Queue a report."""
        self._waiting.append(report)
        if report.WhichOneof("what") in ("refused", "gone"):
            self.final[report.uid] = report
            if len(self.final) > KEPT_FINAL:
                del self.final[next(iter(self.final))]

    def repeat_final(self, uid: str) -> bool:
        """Report again that an attempt was refused or is gone; False when neither was reported before."""
        report = self.final.get(uid)
        if report is not None:
            again = pb.Report()
            again.CopyFrom(report)  # each has a number of its own
            self.put(again)
        return report is not None

    def take(self) -> list[pb.Report]:
        """The reports of the next message, numbered; they are kept until they are acknowledged."""
        taken: list[pb.Report] = []
        size = 0
        for report in self._waiting:
            self._last += 1
            report.serial = self._last
            taken.append(report)
            if (size := size + report.ByteSize()) > FULL_MESSAGE:
                break
        del self._waiting[: len(taken)]
        self._unacked.extend(taken)
        return taken

    def acked(self, serial: int) -> None:
        """The master has committed the reports up to this serial number."""
        while self._unacked and self._unacked[0].serial <= serial:
            self._unacked.popleft()

    def new_stream(self) -> None:
        """A new stream: queue all reports that are not acknowledged again, numbered from 1."""
        self._waiting = [*self._unacked, *self._waiting]
        self._unacked.clear()
        self._last = 0

    def ends(self) -> set[str]:
        """The uids of parts whose ends are not acknowledged."""
        return {report.uid for report in (*self._unacked, *self._waiting) if report.HasField("ended")}

    def clear(self) -> None:
        """The master has another store: drop all reports."""
        self._waiting.clear()
        self._unacked.clear()
        self.final.clear()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self._waiting
