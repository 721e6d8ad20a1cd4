"""The agent's stream to the master: where the masters are, greeting, and reports, kept until acknowledged.

Rule: a master of a lower epoch than one that was seen is not obeyed. Reports are numbered anew on each stream.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from agent.launch.site import Site
from proto import agent_pb2 as pb
from proto import agent_pb2_grpc as pb_grpc

Call = grpc.aio.StreamStreamCall[pb.FromAgent, pb.ToAgent]
GREETING_WAIT = 5.0
KEPT_OVER = 10_000
"""Attempts that were refused, or killed before their start order came."""
_OPTIONS = [
    ("grpc.max_receive_message_length", 128 << 20),
    ("grpc.max_send_message_length", 128 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]


class NotMaster(Exception):
    """Nobody to obey there; the text says why."""


class Session:
    """A stream to a master that answered Welcome."""

    def __init__(self, target: str, channel: grpc.aio.Channel, call: Call, stub: pb_grpc.AgentsStub) -> None:
        self.target = target
        self.stub = stub
        self.welcome = pb.Welcome()
        self._channel = channel
        self._call = call

    async def greet(self, hello: pb.Hello) -> None:
        """Say hello and wait for Welcome; NotMaster when there is none."""
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
        """What the master says, until the stream ends."""
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
        await self._channel.close(None)


async def open_session(target: str, site: Site, hello: pb.Hello) -> Session:
    """Connect to one master and greet it; NotMaster when it is none, or is not there."""
    channel = await _channel(target, site)
    stub = pb_grpc.AgentsStub(channel)  # type: ignore[no-untyped-call]
    session = Session(target, channel, stub.Session(metadata=metadata(site)), stub)
    try:
        await session.greet(hello)
    except BaseException:
        await session.close()
        raise
    return session


def metadata(site: Site) -> tuple[tuple[str, str], ...]:
    """Who calls: the cluster's key and the host's name."""
    found = [("lava-host", site.host)]
    try:
        with open(os.path.join(site.run_dir, "cluster.key"), encoding="ascii") as file:
            found.append(("lava-key", file.read().strip()))
    except (OSError, UnicodeDecodeError):
        pass
    return tuple(found)


async def _channel(target: str, site: Site) -> grpc.aio.Channel:
    folder = site.conf.get("LAVA_TLS_DIR", "")
    if not folder:
        return grpc.aio.insecure_channel(target, options=_OPTIONS)
    try:
        ca, key, cert = await asyncio.to_thread(_credentials, folder, site.host)
    except OSError as e:
        raise NotMaster(f"{e.filename}: {e.strerror}") from None
    credentials = grpc.ssl_channel_credentials(ca, key, cert)
    options: list[tuple[str, object]] = list(_OPTIONS)
    if name := site.conf.get("LAVA_TLS_MASTER_NAME"):
        options.append(("grpc.ssl_target_name_override", name))
    return grpc.aio.secure_channel(target, credentials, options=options)


def _credentials(folder: str, host: str) -> tuple[bytes, bytes, bytes]:
    found = []
    for name in ("ca.crt", f"{host}.key", f"{host}.crt"):
        with open(os.path.join(folder, name), "rb") as file:
            found.append(file.read())
    return found[0], found[1], found[2]


async def _ending(call: Call) -> str:
    try:
        async with asyncio.timeout(1.0):
            return f"{(await call.code()).name}: {await call.details()}"
    except TimeoutError:
        return "no Welcome"


def _why(e: Exception) -> str:
    return f"{e.code().name}: {e.details()}" if isinstance(e, grpc.aio.AioRpcError) else str(e)


class Outbox:
    """Reports until the master has committed them; ``over``: what was said of attempts that must not be started (again)."""

    def __init__(self) -> None:
        self.over: dict[str, pb.Report] = {}
        self._waiting: list[pb.Report] = []
        self._unacked: deque[pb.Report] = deque()
        self._last = 0

    def put(self, report: pb.Report) -> None:
        """A report, sent at the next flush."""
        self._waiting.append(report)
        if report.WhichOneof("what") in ("refused", "gone"):
            self.over[report.uid] = report
            if len(self.over) > KEPT_OVER:
                del self.over[next(iter(self.over))]

    def say_over(self, uid: str) -> bool:
        """Tell once more that an attempt was refused, or that nothing of it is here; False where neither was said."""
        said = self.over.get(uid)
        if said is not None:
            again = pb.Report()
            again.CopyFrom(said)  # each has a number of its own
            self.put(again)
        return said is not None

    def take(self) -> list[pb.Report]:
        """The reports to send now, numbered; they are kept until acknowledged."""
        taken, self._waiting = self._waiting, []
        for report in taken:
            self._last += 1
            report.serial = self._last
        self._unacked.extend(taken)
        return taken

    def acked(self, serial: int) -> None:
        """Everything up to this serial is committed."""
        while self._unacked and self._unacked[0].serial <= serial:
            self._unacked.popleft()

    def new_stream(self) -> None:
        """All that is not acknowledged is sent again, numbered from 1."""
        self._waiting = [*self._unacked, *self._waiting]
        self._unacked.clear()
        self._last = 0

    def ends(self) -> set[str]:
        """The uids of the ends that wait to be sent or acknowledged."""
        return {report.uid for report in (*self._unacked, *self._waiting) if report.HasField("ended")}

    def clear(self) -> None:
        """Another master's store: nothing of what was to be told concerns it."""
        self._waiting.clear()
        self._unacked.clear()
        self.over.clear()

    @property
    def empty(self) -> bool:
        """Nothing waits to be sent."""
        return not self._waiting
