"""Hosts that only pretend: they speak the agents' protocol with a real lavad, thousands of them in one process, and run nothing.

    python -m benchmarks.pretended SOCKET FIRST COUNT SLOTS SECONDS

A part starts at once and ends after SECONDS with exit status 0; a kill, a requeue or a migration ends it with signal 9. When it
is to stop or to go on, it is said to, but its time goes on. Heartbeats and load are sent as the master asks for them. A stream
that ends is opened again, with what the host has and what of it was not acknowledged.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import sys
import time
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from proto import agent_pb2 as pb
from proto import agent_pb2_grpc as pb_grpc
from proto import localsocket
from proto.version import PROTOCOL

LOAD = {
    "r15s": 0.1,
    "r1m": 0.1,
    "r15m": 0.1,
    "ut": 0.01,
    "pg": 0.0,
    "ls": 0.0,
    "it": 9.0,
    "tmp": 90_000.0,
    "swp": 8_000.0,
    "mem": 60_000.0,
}
GATHER = 0.002
"""Seconds for which reports are gathered into one message, as an agent does."""
AGAIN = 3.0
"""Seconds at most until a stream that has ended is opened again."""
ENDING = ("kill", "requeue", "migrate")
"""Requests that end a part."""
ONE_CHANNEL = 50
"""Hosts that share a connection; each agent has one of its own."""


class Host:
    """One of them."""

    def __init__(self, name: str, slots: int, seconds: float) -> None:
        self.name = name
        self._slots = slots
        self._seconds = seconds
        self._serial = 0
        self._sequence = 0
        self._streams = 0
        self._reports: list[pb.Report] = []
        self._had: set[str] = set()
        """Attempts that it was to start: a start that is sent again is none."""
        self._untold: list[pb.Report] = []
        """Those that are sent and not acknowledged."""
        self._running: dict[str, tuple[int, int, float]] = {}
        self._ends: list[tuple[float, str]] = []
        self._prepared: dict[str, tuple[int, int]] = {}
        self._told = asyncio.Event()
        self._heartbeat = 10.0

    async def live(self, stub: pb_grpc.AgentsStub) -> None:
        """Its streams, for ever."""
        while True:
            try:
                await self._stream(stub)
            except grpc.aio.AioRpcError as error:
                print(f"{self.name}: {error.code().name}: {error.details()}", file=sys.stderr, flush=True)
            await asyncio.sleep(AGAIN * random.random())

    async def _stream(self, stub: pb_grpc.AgentsStub) -> None:
        stream = stub.Session(self.messages(), metadata=(("lava-host", self.name),), wait_for_ready=True)
        async for message in stream:
            self.take(message)

    def take(self, message: pb.ToAgent) -> None:
        """What the master says."""
        kind = message.WhichOneof("kind")
        if kind == "welcome":
            self._heartbeat = message.welcome.heartbeat
        elif kind == "orders":
            for order in message.orders.orders:
                self._order(order)
        elif kind == "acks":
            self._untold = [report for report in self._untold if report.serial > message.acks.serial]
            self._had.difference_update(message.acks.ended)

    def _hello(self) -> pb.Hello:
        """What it has; its reports that were not acknowledged are sent again, with numbers of this stream."""
        self._serial, self._reports, self._untold = 0, [*self._untold, *self._reports], []
        for report in self._reports:
            self._serial += 1
            report.serial = self._serial
        running = [("running", uid, key, attempt) for uid, (key, attempt, _) in self._running.items()]
        prepared = [("prepared", uid, key, attempt) for uid, (key, attempt) in self._prepared.items()]
        ended = [("ended", one.uid, one.key, one.attempt) for one in self._reports if one.WhichOneof("what") == "ended"]
        parts = [
            pb.PartStatus(state=state, uid=uid, key=key, attempt=attempt)
            for state, uid, key, attempt in (*running, *prepared, *ended)
        ]
        facts = pb.Facts(ncpus=self._slots, max_mem=64_000, max_swap=8_000, max_tmp=100_000, type="X86_64", model="pretended",
                         cpu_factor=1.0, boot_id=self.name, nprocs=1, ncores=self._slots, nthreads=1, starter=2)  # fmt: skip
        return pb.Hello(host=self.name, facts=facts, protocol=PROTOCOL, sequence=self._sequence, parts=parts, unpacks=True)

    async def messages(self) -> AsyncIterator[pb.FromAgent]:
        """What it says in a new stream, after which an older one says nothing."""
        self._streams += 1
        stream = self._streams
        yield pb.FromAgent(hello=self._hello())
        beat = 0.0
        while stream == self._streams:
            now = time.monotonic()
            while self._ends and self._ends[0][0] <= now:
                self._end(heapq.heappop(self._ends)[1], 0)
            if now >= beat:
                beat = now + self._heartbeat
                yield pb.FromAgent(heartbeat=pb.Heartbeat(sent=time.clock_gettime(time.CLOCK_BOOTTIME), load=LOAD))
            if self._reports:
                reports, self._reports = self._reports, []
                self._untold += reports
                yield pb.FromAgent(reports=pb.Reports(reports=reports))
            soonest = min(beat, self._ends[0][0]) if self._ends else beat
            self._told.clear()
            try:
                async with asyncio.timeout(max(0.0, soonest - time.monotonic())):
                    await self._told.wait()
                await asyncio.sleep(GATHER)
            except TimeoutError:
                pass

    def _order(self, order: pb.Order) -> None:
        what = order.WhichOneof("what")
        if what == "start" and order.uid not in self._had:
            self._had.add(order.uid)
            self._sequence = max(self._sequence, order.start.sequence)
            if order.start.two_phase:
                self._prepared[order.uid] = (order.key, order.attempt)
                self._report(
                    order.uid, order.key, order.attempt, prepared=pb.Prepared(endpoint=pb.Endpoint(host="127.0.0.1", port=1))
                )
            else:
                self._start(order.uid, order.key, order.attempt)
        elif what == "release" and order.uid in self._prepared:
            self._start(order.uid, *self._prepared.pop(order.uid))
        elif what == "kill":
            self._end(order.uid, 9)
        elif what == "stop":
            self._report(order.uid, order.key, order.attempt, stopped=pb.Stopped(stopped=order.stop.stopped))
        elif what == "signal":
            self._report(order.uid, order.key, order.attempt, granted=pb.Granted(number=order.signal.number, ok=True))
            if order.signal.kind in ENDING:
                self._end(order.uid, 9)

    def _start(self, uid: str, key: int, attempt: int) -> None:
        now = time.time()
        self._running[uid] = (key, attempt, now)
        self._report(uid, key, attempt, started=pb.Started(pid=4242, started=now, cwd="/tmp"))
        if self._seconds:
            heapq.heappush(self._ends, (time.monotonic() + self._seconds, uid))
        else:
            self._end(uid, 0)

    def _end(self, uid: str, status: int) -> None:
        if uid in self._prepared:
            key, attempt = self._prepared.pop(uid)
            self._report(uid, key, attempt, gone=pb.Gone())
        found = self._running.pop(uid, None)
        if found is not None:
            key, attempt, started = found
            ended = pb.Ended(
                status=status, at=time.time(), started=started, utime=0.01, stime=0.01, max_mem=1, first_rank=-1, gone=True
            )
            self._report(uid, key, attempt, ended=ended)

    def _report(self, uid: str, key: int, attempt: int, **what: object) -> None:
        self._serial += 1
        self._reports.append(pb.Report(serial=self._serial, key=key, attempt=attempt, uid=uid, **what))  # type: ignore[arg-type]
        self._told.set()


async def _all(target: str, hosts: list[Host]) -> None:
    await asyncio.gather(*(_few(target, hosts[at : at + ONE_CHANNEL]) for at in range(0, len(hosts), ONE_CHANNEL)))


async def _few(target: str, hosts: list[Host]) -> None:
    _folder, through = localsocket.reach(target)
    options = [("grpc.max_receive_message_length", 128 << 20), ("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(through, options=options) as channel:
        stub = pb_grpc.AgentsStub(channel)  # type: ignore[no-untyped-call]
        await asyncio.gather(*(host.live(stub) for host in hosts))


def main(argv: list[str]) -> int:
    """Until it is ended."""
    target, first, count, slots, seconds = argv
    hosts = [Host(f"host{number}", int(slots), float(seconds)) for number in range(int(first), int(first) + int(count))]
    asyncio.run(_all(target, hosts))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
