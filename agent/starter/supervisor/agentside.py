"""The starter's side of starter.sock: one agent at a time; the reports of a turn go in one frame.

Rule: an agent that sends malformed data or does not read is disconnected; starter and parts continue.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from agent.starter.protocol.codec import Json, ProtocolError
from agent.starter.protocol.orders import Greet, Order, ToShepherd, find_order
from agent.starter.protocol.reports import EncodedReport, FromStarter, Hello, PartReport, Refused, write_report, write_reports
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import FrameError, frame
from agent.starter.wire.pipe import FramePipe

MAX_AGENT_WAITING = 64 << 20
MAX_KEPT_REFUSALS = 10_000
LONGEST_PATH = 100
"""Bytes; the kernel takes 107."""

Obey = Callable[[Order | ToShepherd], None]


class AgentSide:
    """Listens and passes orders to ``obey``, which raises ProtocolError for an invalid order."""

    def __init__(self, path: str, watch: Watch, obey: Obey, log: Callable[[str], None]) -> None:
        self._path = path
        self._watch = watch
        self._obey = obey
        self._log = log
        self._agent: FramePipe | None = None
        self._ungreeted: set[FramePipe] = set()
        self._reports: list[PartReport | EncodedReport] = []
        self._refusals: list[PartReport] = []
        self._current: FramePipe | None = None
        self._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listen()

    def _listen(self) -> None:
        new = f"{self._path}.{os.getpid()}"
        before = os.umask(0o177)
        try:
            with _short_path(new) as short:
                self._listener.bind(short)
            self._listener.listen(16)
            os.rename(new, self._path)
        finally:
            os.umask(before)
        self._listener.setblocking(False)
        self._watch.add(self._listener.fileno(), self._accept)

    def close(self) -> None:
        """Stop listening and disconnect the agent."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._listener.close()
        if self._agent:
            self._agent.close()

    def _accept(self, _: int) -> None:
        try:
            sock, _addr = self._listener.accept()
        except OSError as e:
            if e.errno == errno.EMFILE:
                self._turn_away()
            return
        pipe = FramePipe(sock, self._watch)
        self._ungreeted.add(pipe)
        self._watch.add(sock.fileno(), lambda _: self._read(pipe))

    def _turn_away(self) -> None:
        """There is no file left for a connection: one that waits is closed, as it would be told of again and again."""
        os.close(self._spare)
        with contextlib.suppress(OSError):
            self._listener.accept()[0].close()
        self._spare = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)

    def _read(self, pipe: FramePipe) -> None:
        try:
            orders = pipe.read()
            if orders is None:
                self._drop(pipe, "")
                return
            for found in orders:
                order = find_order(found)
                if pipe is not self._agent and not isinstance(order, Greet):
                    raise ProtocolError("the first frame is not hello")
                if order is None:
                    self._pass_over(found)
                    continue
                self._current = pipe
                self._carry_out(order)
                if pipe.closed:
                    return
        except (FrameError, ProtocolError) as e:
            self._drop(pipe, f"{type(e).__name__}: {e}")

    def _pass_over(self, order: Json) -> None:
        kind = order.get("do")
        if not isinstance(kind, str):
            raise ProtocolError("a frame that is no order")
        self._log(f"an order of a newer agent that this starter does not know: {kind[:40]!r}")

    def _carry_out(self, order: Order | ToShepherd) -> None:
        try:
            self._obey(order)
        except ProtocolError:
            raise
        except Exception as e:
            # what is wrong with one order must end neither the starter nor the connection, which would bring it again
            self._log(f"an order could not be carried out: {type(order).__name__}: {type(e).__name__}: {e}")

    def _drop(self, pipe: FramePipe, why: str) -> None:
        if why:
            self._log(f"agent connection dropped: {why}")
        self._ungreeted.discard(pipe)
        if pipe is self._agent:
            self._agent = None
        pipe.close()

    def welcome(self, hello: Hello) -> None:
        """Make the connection whose Greet is being handled the agent's, and close the former one."""
        pipe = self._current
        if pipe is None or pipe.closed:
            return
        if self._agent is not None and self._agent is not pipe:
            self._drop(self._agent, "")
        self._ungreeted.discard(pipe)
        self._agent = pipe
        # All else that happened is in Hello; refused parts are not listed there.
        self._refusals += [report for report in self._reports if isinstance(report, Refused)]
        self._reports.clear()
        pipe.send(write_report(hello))
        if self._refusals:
            pipe.send_frame(frame(write_reports(self._refusals)))
            self._refusals = []

    def answer(self, answer: FromStarter) -> None:
        """Send an answer in a frame of its own, after the reports so far."""
        self._pack_reports()
        if self._agent:
            self._agent.send(write_report(answer))

    def report(self, report: PartReport | EncodedReport) -> None:
        """Queue a report for this turn's frame. Without an agent it is dropped, as Hello has it; a refusal is kept."""
        if self._agent is not None:
            self._reports.append(report)
        elif isinstance(report, Refused) and len(self._refusals) < MAX_KEPT_REFUSALS:
            self._refusals.append(report)

    def _pack_reports(self) -> None:
        if self._reports and self._agent is not None:
            self._agent.send_frame(frame(write_reports(self._reports)))
        self._reports = []

    def flush(self) -> None:
        """Send the reports of this turn."""
        self._pack_reports()
        agent = self._agent
        if agent is not None and (not agent.flush() or agent.waiting > MAX_AGENT_WAITING):
            self._drop(agent, "it does not read")


@contextmanager
def _short_path(path: str) -> Iterator[str]:
    """A path that bind(2) accepts, valid while the context lasts. As ``proto.unixpath``, which the starter cannot import."""
    if len(os.fsencode(path)) <= LONGEST_PATH:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
