"""The shepherd: owns what one part has on this host, one part at a time, as the part's user.

Rule: whatever happens to agent and starter, its processes end by the lease, by an order, or with the starter.
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from agent.starter.part import native_parts, user_files
from agent.starter.part.native_parts import Handed, NativeParts
from agent.starter.part.partrun import PartRun
from agent.starter.process.progress import Phase
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol import orders
from agent.starter.protocol.codec import Json, ProtocolError, parse
from agent.starter.protocol.orders import ToPart, ToShepherd, read_order
from agent.starter.protocol.part import uid_of
from agent.starter.protocol.reports import EncodedReport, FromShepherd, Gone, Killing, Refused, write_report
from agent.starter.system import apart, kernel
from agent.starter.system.watch import Wake, Watch
from agent.starter.terminal.terminal import Terminal
from agent.starter.wire import frames
from agent.starter.wire.pipe import FramePipe

IDLE_TITLE_AFTER = 0.05
NO_TEMPLATES: Mapping[int, bytes] = MappingProxyType({})


class Shepherd:
    """Its loop: orders from the starter, ended children, the part's files and timers."""

    def __init__(self, sock: socket.socket, end_fd: int, host: str, templates: Mapping[int, bytes] = NO_TEMPLATES) -> None:
        self._watch = Watch()
        self._starter = FramePipe(sock, self._watch)
        self._end_fd = end_fd
        self._host = host
        self._templates = {number: Template(parse(fields)) for number, fields in templates.items()}
        """Those that native code has not taken."""
        self._last: tuple[bytes, Template] | None = None
        self._native: NativeParts | None = None
        self._native_runs = True
        self._part: PartRun | None = None
        self._terminals: list[Terminal] = []
        """Of parts that are gone, with output that their users have still to read."""
        self._alone = False
        self._titled = 1
        self._watch.add(sock.fileno(), self._from_starter)

    def run(self) -> None:
        """Run until the starter closes the socket and nothing of a part is left."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        wake = Wake(self._watch)
        self._native = native_parts.begin(self._starter.sock.fileno(), wake.fd, self._end_fd)
        self._loop(wake)

    def go_on(self, native: NativeParts | None, handed: Handed, wake: int) -> None:
        """As ``run``, in a process that has run parts by native code until then. ``wake``: the pipe of its signals."""
        woken = Wake(self._watch, wake)
        self._native = native
        self._go_on(handed)
        self._loop(woken)

    def _loop(self, wake: Wake) -> None:
        while not (self._alone and self._part is None and not self._terminals):
            if not self._alone and not self._starter.flush():
                self._starter_gone()
                continue
            if self._native and self._native_runs and self._is_free() and self._starter.is_between_frames:
                self._go_on(self._native.run())
                continue
            self._watch.wait(self._pause())
            ended = wake.was_signalled()
            if self._part:
                self._part.take_events()
            if self._part and ended:
                self._part.look()
            if self._part:
                self._part.on_time()
            for terminal in self._terminals:
                terminal.on_time()
            self._terminals = [terminal for terminal in self._terminals if not terminal.done]
            self._settle()

    def _is_free(self) -> bool:
        """Whether the starter's next order is all there is to wait for."""
        return not self._alone and not self._part and not self._terminals

    def _pause(self) -> float | None:
        """Seconds to wait. The next part often comes at once: ps shows "idle" only after a moment without one."""
        if self._part:
            return self._part.wait_for()
        if not self._titled:
            due = min((at for terminal in self._terminals if (at := terminal.wake_at()) is not None), default=None)
            return None if due is None else max(0.0, due - time.monotonic())
        if self._titled == 1:
            kernel.set_title("lava-shepherd (idle)")
        self._titled -= 1
        return IDLE_TITLE_AFTER

    def _settle(self) -> None:
        """Send what the part has to tell; when it is gone, be free for the next one."""
        part = self._part
        if part is None:
            return
        if part.reports:
            reports, part.reports = part.reports, []
            for report in reports:
                self._tell(report)
        if part.phase is Phase.GONE:
            if part.terminal and not part.terminal.done:
                self._terminals.append(part.terminal)
            self._part = None
            apart.clear_session_keyring()

    def _go_on(self, handed: Handed) -> None:
        """Do what native code does not, with the part that it has started."""
        self._titled = 2
        if handed.unsent:
            self._starter.send_frame(handed.unsent)
        if task := handed.task:
            self._part = PartRun(Spec(self._parsed(task.template), parse(task.own)), self._end_fd, self._host, self._watch)
            self._part.take_over(task)
            self._settle()
        if handed.closed:
            self._starter_gone()
        elif handed.input:
            self._take(lambda: self._starter.feed(handed.input))
        elif not handed.unsent and not handed.task:
            self._native_runs = False  # it cannot wait here: asked again it would come back at once, for ever

    def _from_starter(self, _: int) -> None:
        self._take(self._starter.read)

    def _take(self, read: Callable[[], list[Json] | None]) -> None:
        try:
            found = read()
            wanted = None if found is None else [read_order(one) for one in found]
        except (frames.FrameError, ProtocolError):
            wanted = None
        if wanted is None:
            self._starter_gone()
            return
        for order in wanted:
            self._obey(order)
            self._settle()

    def _starter_gone(self) -> None:
        """The starter is gone: tasks that have ended get their end into its file, the others are killed without one."""
        if self._alone:
            return
        self._alone = True
        self._starter.close()
        if self._part:
            self._part.look()
            self._part.silent = True
            self._part.kill()
            self._settle()

    def _tell(self, report: FromShepherd | EncodedReport) -> None:
        if self._alone:
            return
        if isinstance(report, bytes):
            self._starter.send_frame(frames.frame(report))
        else:
            self._starter.send(write_report(report))

    def _obey(self, order: orders.Order | ToShepherd) -> None:
        match order:
            case orders.Begin():
                self._begin(order)
            case orders.Template(number, fields, drop):
                for old in drop:
                    if self._templates.pop(old, None) is None and self._native:
                        self._native.drop(old)
                self._templates[number] = Template(fields)
            case orders.Read():
                self._tell(user_files.read(order))
            case orders.FindFolders():
                self._tell(user_files.find_folders(order))
            case orders.FindGenerations():
                self._tell(user_files.find_generations(order))
            case orders.Append() | orders.Deliver():
                self._tell(user_files.write(order))
            case orders.Greet() | orders.List() | orders.Start() | orders.Forget():
                pass  # for the starter alone
            case _:
                if self._part is not None:
                    self._obey_for_part(self._part, order)

    def _obey_for_part(self, part: PartRun, order: ToPart) -> None:
        if not orders.is_about(order, part.uid):
            return
        match order:
            case orders.Kill(_, posts):
                self._tell(Killing(part.uid))
                part.kill(posts)
            case orders.Signal(_, sig, scope, within):
                part.signal(sig, scope, within)
            case orders.Go(_, root):
                part.go(root)
            case orders.StartTask(_, rank, number, delay):
                part.start_task(rank, number, delay)
            case orders.EndTask(_, rank, number, asked):
                part.end_task(rank, number, asked)
            case orders.Finish(_, first, leave):
                part.finish(first, leave)
            case orders.Note(_, use):
                part.resources.note(use)
            case orders.JobHosts(_, hosts):
                part.resources.hosts_changed(hosts)
            case orders.Leave():
                part.resources.leave()
            case orders.Renew(deadline):
                part.renew(deadline)

    def _template(self, number: int) -> Template:
        """LookupError: there is none."""
        if number not in self._templates and self._native and (fields := self._native.template(number)):
            return self._parsed(fields)
        return self._templates[number]

    def _parsed(self, fields: bytes) -> Template:
        """A template that native code has; the last one is kept, since the parts of an array come one after the other."""
        if self._last is None or self._last[0] != fields:
            self._last = fields, Template(parse(fields))
        return self._last[1]

    def _begin(self, order: orders.Begin) -> None:
        try:
            spec = Spec(self._template(order.t), order.p)
        except (LookupError, TypeError, ValueError, AttributeError) as e:
            uid = uid_of(order.p)
            self._tell(Refused(uid, "bad", f"part {uid}: {type(e).__name__}: {e}"))
            self._tell(Gone(uid))
            return
        self._titled = 2
        kernel.set_title(f"lava-shepherd {spec.title}")
        self._part = PartRun(spec, self._end_fd, self._host, self._watch)
        self._part.begin()
