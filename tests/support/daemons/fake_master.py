"""A master for one agent's tests: the real wire, no deciding. It sends what a test gives it, and remembers."""

from __future__ import annotations

import contextlib
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path

import grpc

from proto import agent_pb2 as pb
from proto import agent_pb2_grpc as pb_grpc
from proto import localsocket
from tests.support.wait import wait_until


class FakeMaster(pb_grpc.AgentsServicer):
    """With ``acknowledges`` False it acknowledges nothing. ``tls``: a folder with ca.crt, master.crt and master.key."""

    def __init__(self, incarnation: str = "store-1", epoch: int = 1, tls: Path | None = None) -> None:
        self.incarnation = incarnation
        self.epoch = epoch
        self.acknowledges = True
        self.standby = False
        self.echoes = True
        """Heartbeats are answered."""
        self.extended = 0.0
        self.hellos: list[pb.Hello] = []
        self.reports: list[pb.Report] = []
        self.heartbeats: list[pb.Heartbeat] = []
        self.peeks: list[pb.PeekData] = []
        self.commands: list[pb.CommandFrame] = []
        self.answers: list[bytes] = []
        self.breaks_off = False
        self.copies = pb.Welcome()
        """What Welcome tells hosts that hold copies of checkpoints."""
        self.metadata: dict[str, str] = {}
        self.sequence = 0
        self._last_text = 0
        self._out: queue.Queue[pb.ToAgent | None] | None = None
        self._lock = threading.Lock()
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
        pb_grpc.add_AgentsServicer_to_server(self, self._server)
        self._end = contextlib.ExitStack()
        if tls is None:
            folder = self._end.enter_context(tempfile.TemporaryDirectory(prefix="lava-master-"))
            self.address = localsocket.address(folder, "lavad")
            descriptor, through = localsocket.make(self.address)
            self._end.callback(os.close, descriptor)
            self._server.add_insecure_port(through)
        else:
            pair = ((tls / "master.key").read_bytes(), (tls / "master.crt").read_bytes())
            credentials = grpc.ssl_server_credentials([pair], (tls / "ca.crt").read_bytes(), True)
            self.address = f"127.0.0.1:{self._server.add_secure_port('127.0.0.1:0', credentials)}"
        self._server.start()

    def Session(self, request_iterator: Iterator[pb.FromAgent], context: grpc.ServicerContext) -> Iterator[pb.ToAgent]:
        self.metadata = {key: str(value) for key, value in context.invocation_metadata()}
        if self.standby:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "standby")
        hello = next(request_iterator).hello
        out: queue.Queue[pb.ToAgent | None] = queue.Queue()
        self.sequence = max(self.sequence, hello.sequence)
        self._out = out
        welcome = pb.Welcome(epoch=self.epoch, incarnation=self.incarnation, heartbeat=0.2, sample=0.2, cluster="c1")
        welcome.MergeFrom(self.copies)
        out.put(pb.ToAgent(welcome=welcome))
        self.hellos.append(hello)
        threading.Thread(target=self._read, args=(request_iterator, out), daemon=True).start()
        while (message := out.get()) is not None:
            yield message

    def _read(self, messages: Iterator[pb.FromAgent], out: queue.Queue[pb.ToAgent | None]) -> None:
        try:
            for message in messages:
                self._take(message, out)
        except grpc.RpcError:
            pass
        finally:
            out.put(None)

    def _take(self, message: pb.FromAgent, out: queue.Queue[pb.ToAgent | None]) -> None:
        kind = message.WhichOneof("kind")
        if kind == "heartbeat":
            self.heartbeats.append(message.heartbeat)
            if self.echoes:
                out.put(pb.ToAgent(echo=pb.Echo(sent=message.heartbeat.sent, extended=self.extended)))
        elif kind == "peek":
            self.peeks.append(message.peek)
        elif kind == "reports":
            reports = list(message.reports.reports)
            self.reports += reports
            if self.acknowledges:
                ended = [report.uid for report in reports if report.HasField("ended")]
                out.put(pb.ToAgent(acks=pb.Acks(serial=reports[-1].serial, ended=ended)))

    def Command(self, request: pb.CommandFrame, context: grpc.ServicerContext) -> Iterator[pb.CommandFrame]:
        self.commands.append(request)
        for answer in self.answers:
            yield pb.CommandFrame(frame=answer)
        if self.breaks_off:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the master died")

    def send(self, **what: object) -> None:
        """A message on the stream that is open."""
        assert self._out is not None
        self._out.put(pb.ToAgent(**what))  # type: ignore[arg-type]

    def order(self, *orders: pb.Order, texts: tuple[pb.JobText, ...] = ()) -> None:
        """Orders, with the texts that they need."""
        self.send(orders=pb.Orders(texts=texts, orders=orders))

    def next_sequence(self) -> int:
        """A sequence number for a start."""
        self.sequence += 1
        return self.sequence

    def next_text(self) -> int:
        """A number for a text."""
        self._last_text += 1
        return self._last_text

    def drop(self) -> None:
        """End the stream."""
        if self._out is not None:
            self._out.put(None)

    def of(self, uid: str, what: str) -> list[pb.Report]:
        """The reports of one kind about an attempt."""
        return [report for report in self.reports if report.uid == uid and report.WhichOneof("what") == what]

    def wait_for(self, uid: str, what: str, timeout: float = 30.0) -> pb.Report:
        """The first report of a kind about an attempt."""
        story: Callable[[], str] = lambda: f"{what} of {uid}; there are {self.reports}"  # noqa: E731
        return wait_until(lambda: self.of(uid, what), timeout, story)[0]

    def stop(self) -> None:
        """End the server and its streams."""
        self.drop()
        self._server.stop(0).wait()
        self._end.close()
