"""The starter: receives orders from the agent, hands parts over to shepherds, and outlives agents.

Rule: one thread, whose loop never waits for a user's file system, a shepherd or the agent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from agent.starter.part import native_parts
from agent.starter.protocol import orders
from agent.starter.protocol.codec import Json, ProtocolError, prepare, text
from agent.starter.protocol.orders import Order, ToPart, ToShepherd
from agent.starter.protocol.part import (
    CgroupLimits,
    LinkSpec,
    PartSpec,
    PmiSpec,
    PortsSpec,
    TaskSpec,
    User,
    read_part,
    read_template,
    template_of,
    uid_of,
)
from agent.starter.protocol.reports import (
    Address,
    End,
    Ended,
    EndedTask,
    Gone,
    Hello,
    Listed,
    PartStatus,
    Prepared,
    Refused,
    Root,
    RunningTask,
    Started,
    Wrote,
)
from agent.starter.protocol.version import PROTOCOL
from agent.starter.supervisor import forker, leftovers
from agent.starter.supervisor.agentside import AgentSide
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.supervisor.pool import Home
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey
from agent.starter.supervisor.supervisor import Supervisor
from agent.starter.supervisor.user_requests import failed
from agent.starter.system import kernel
from agent.starter.system.notify import Notify
from agent.starter.system.stdio import one_line
from agent.starter.system.watch import Wake, Watch
from agent.starter.wire.frames import MAX_FRAME, FrameError

MAX_JOURNAL = 8 << 20
MAX_TEMPLATES = 2048
MAX_TEMPLATE_BYTES = 256 << 20
"""What an agent that never drops a template may leave here; well above what one keeps that does."""
LARGEST_TEMPLATE = MAX_FRAME - 4096
"""Bytes, as it goes to a shepherd."""
NO_LIMITS = CgroupLimits()
FORKED_AT_ONCE = 32
TIDY_SECONDS = 10.0
PAUSE_AFTER_ERROR = 0.1


class Template(NamedTuple):
    """What several parts have in common, with its number in messages to shepherds."""

    number: int
    text: bytes
    """Its fields as JSON."""
    spec: PartSpec
    native: bool
    """Native code knows it."""


class Accepted(NamedTuple):
    """A part of a start order that was accepted, with the shepherd that is to run it."""

    part: Part
    shepherd: ShepherdHandle
    template: Template
    own: Json
    """Its fields as received; the shepherd reads them."""
    spec: PartSpec


class Starter:
    """The starter's loop, and what it does for each order of the agent."""

    def __init__(self, home: Home, folder: str, socket_path: str) -> None:
        self._boot = kernel.boot_id()
        self._watch = Watch()
        # Before the first fork: every shepherd has the functions that each part needs.
        prepare(PartSpec, orders.Begin, orders.Template, Ended, End, EndedTask, RunningTask, Started)
        prepare(TaskSpec, PmiSpec, LinkSpec, PortsSpec, orders.Go, Prepared, Address, Root, Gone)  # of jobs over several hosts
        why = native_parts.load()
        log(f"parts of one process are run by Python: {why}" if why else "parts of one process are run by native code")
        self._forkers = forker.begin(home.host, home.oom_score)
        self._native = any(one.native for one in self._forkers)
        self._journal = Journal(folder)
        former = self._journal.load()
        leftovers.clear(former, self._boot, home.host, home.fenced)
        # The shepherds of the former starter are gone: their numbers are used again.
        for part in former.parts.values():
            part.shepherd = 0
        self._parts: dict[str, Part] = former.parts
        self._seq = former.seq
        self._journal.rewrite(self._boot, self._seq, self._parts.values())
        self._journal.drop_former_ends()
        self._templates: dict[str, Template | str] = {}
        """Those of this connection by name, or why one is invalid."""
        self._last_template = 0
        self._stopping = False
        self._tidy_at = 0.0
        self._bare = self._template({})
        self._wake_on_signals()
        self._agent = AgentSide(socket_path, self._watch, self._obey, log)
        home = home._replace(forkers=self._forkers)
        self._supervisor = Supervisor(home, self._journal, self._watch, self._parts, self._agent.report, self._agent.answer)

    def run(self) -> None:
        """Run until SIGTERM; then end all parts."""
        notify = Notify()
        notify.tell("READY=1")
        longest = min(TIDY_SECONDS, notify.every or TIDY_SECONDS)
        while not self._stopping:
            notify.beat()
            try:
                self._turn(longest)
            except OSError as e:  # of a disk, say: all parts of the host would end with the starter
                log(f"goes on after an error: {e}")
                time.sleep(PAUSE_AFTER_ERROR)
        notify.tell("STOPPING=1")
        self._agent.close()
        self._supervisor.stop()
        for one in self._forkers:
            one.close(wait=True)
        self._journal.sync()

    def _turn(self, longest: float) -> None:
        pause = self._supervisor.wait_for()
        self._watch.wait(longest if pause is None else min(pause, longest))
        if self._wake.was_signalled():
            self._supervisor.reap()
            if any(one.pid < 0 for one in self._forkers):
                log("a process that forked shepherds has ended: without it, the starter forks them")
                self._forkers = tuple(one for one in self._forkers if one.pid > 0)
        self._supervisor.on_time()
        self._supervisor.pool.flush()
        self._agent.flush()
        self._journal.sync()  # last: shepherds and agent go on meanwhile
        self._tidy()

    def _wake_on_signals(self) -> None:
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, self._stop)
        for sig in (signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(sig, lambda *_: None)
        self._wake = Wake(self._watch)

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _tidy(self) -> None:
        now = time.monotonic()
        if now < self._tidy_at:
            return
        self._tidy_at = now + TIDY_SECONDS
        self._supervisor.pool.retire_idle()
        if self._journal.size > MAX_JOURNAL or self._journal.incomplete:
            try:
                self._rewrite_journal()
            except OSError as e:
                log(f"the journal is not begun anew: {e.strerror}")

    def _rewrite_journal(self) -> None:
        self._journal.rewrite(self._boot, self._seq, self._parts.values())
        self._journal.add_shepherds([one.record() for one in self._supervisor.pool.by_pid.values()])

    # -- orders ------------------------------------------------------------------------------------------------------

    def _obey(self, order: Order | ToShepherd) -> None:
        match order:
            case orders.Start():
                self._start(order)
            case orders.Greet():
                self._templates.clear()
                self._agent.welcome(Hello(self._boot, os.getpid(), self._seq, self._list(), PROTOCOL))
            case orders.List():
                self._agent.answer(Listed(self._list()))
            case orders.Forget(uids):
                self._supervisor.forget(uids)
            case orders.Read() | orders.FindFolders() | orders.FindGenerations():
                self._read(order)
            case orders.Append() | orders.Deliver():
                self._write(order)
            case orders.Template() | orders.Begin():
                raise ProtocolError("an order for shepherds")
            case _:
                self._obey_about_parts(order)

    def _obey_about_parts(self, order: ToPart) -> None:
        match order:
            case orders.Kill(uids, posts):
                for part in self._known(uids):
                    self._supervisor.kill(part, posts, len(uids))
            case orders.Renew():
                self._renew(order)
            case orders.Signal(uids, sig):
                if not 0 < sig <= 64:
                    raise ProtocolError(f"no signal {sig}")
                for part in self._known(uids):
                    self._supervisor.order(part, order)
            case _:
                for part in self._known((order.uid,)):
                    self._supervisor.order(part, order)

    def _list(self) -> tuple[PartStatus, ...]:
        return tuple(part.status() for part in self._parts.values())

    def _known(self, uids: Iterable[str]) -> list[Part]:
        return [part for uid in uids if (part := self._parts.get(uid)) is not None]

    def _renew(self, order: orders.Renew) -> None:
        for part in list(self._parts.values()) if order.uids is None else self._known(order.uids):
            if part.deadline is not None and not part.state.over:
                part.deadline = order.deadline
                self._supervisor.order(part, order)

    def _read(self, order: orders.Look) -> None:
        try:
            self._supervisor.requests.read(key_of(order.user, False), order)
        except (OSError, ValueError) as e:
            self._agent.answer(failed(order, f"{order.path}: {e}"))

    def _write(self, order: orders.Write) -> None:
        try:
            key = key_of(order.user, False)
        except PermissionError as e:
            self._agent.report(Wrote(uid=order.id, error=str(e)))
            return
        self._supervisor.requests.write(key, order)

    # -- start -------------------------------------------------------------------------------------------------------

    def _start(self, order: orders.Start) -> None:
        seq = order.seq
        self._take_templates(order)
        stale = seq <= self._seq
        accepted: list[Accepted] = []
        for own in order.parts:
            uid = uid_of(own)
            known = self._parts.get(uid)
            if known is not None:
                if report := known.current_report():
                    self._agent.report(report)
            elif stale:
                self._refuse(uid, "stale", f"stale order: {seq} is not after {self._seq}")
            elif self._stopping:
                self._refuse(uid, "stale", "the starter is stopping")
            else:
                accepted += self._accept(uid, own)
        for name in order.drop:
            self._templates.pop(name, None)
        if not stale:
            self._seq = seq
        if accepted and not self._write_to_journal(seq, accepted):
            return
        pool = self._supervisor.pool
        for begin in range(0, len(accepted), FORKED_AT_ONCE):
            now = accepted[begin : begin + FORKED_AT_ONCE]
            failed = pool.fork(one.shepherd for one in now)
            for one in now:
                self._hand_over(one, failed.get(one.shepherd))
            pool.flush()  # these begin while the next are forked

    def _take_templates(self, order: orders.Start) -> None:
        known = (len(found.text) for found in self._templates.values() if isinstance(found, Template))
        if order.templates and (len(self._templates) >= MAX_TEMPLATES or sum(known) > MAX_TEMPLATE_BYTES):
            self._templates.clear()
        for name, fields in order.templates.items():
            self._templates[name] = self._template(fields)

    def _accept(self, uid: str, own: Json) -> list[Accepted]:
        """The part as a list of one, or [] when it is refused."""
        name = template_of(own)
        template = self._templates.get(name, "its template is not there") if name else self._bare
        try:
            if isinstance(template, str):
                raise ProtocolError(template)
            spec = read_part(template.spec, own)
            key = key_of(spec.user, spec.needs_tls)
            if self._native and template.native and native_parts.knows(own):
                key = key._replace(native=True)
        except PermissionError as e:
            self._refuse(uid, "no_user", str(e))
            return []
        except ProtocolError as e:
            self._refuse(uid, "bad", f"part {uid}: {e}")
            return []
        shepherd = self._supervisor.pool.reserve(key)
        part = Part(uid, spec.key, spec.attempt, shepherd.number)
        part.title = spec.title or uid
        part.deadline = spec.deadline
        shepherd.busy = uid
        self._parts[uid] = part
        return [Accepted(part, shepherd, template, own, spec)]

    def _write_to_journal(self, seq: int, accepted: list[Accepted]) -> bool:
        try:
            if self._journal.incomplete:
                self._rewrite_journal()
            else:
                self._journal.add(seq, [one.part for one in accepted])
        except OSError as e:
            for one in accepted:
                self._parts.pop(one.part.uid, None)
                self._supervisor.pool.release(one.shepherd)
                self._refuse(one.part.uid, "nomem", f"the starter's journal: {e.strerror}")
            return False
        return True

    def _hand_over(self, accepted: Accepted, no_process: OSError | None) -> None:
        pool, part, shepherd = self._supervisor.pool, accepted.part, accepted.shepherd
        if no_process is not None:
            self._take_back(accepted, "nomem", f"no process for {part.title}: {no_process.strerror}")
            return
        try:
            shepherd.send_part(accepted.template.number, accepted.template.text, accepted.own)
        except FrameError as e:
            self._take_back(accepted, "bad", f"part {part.uid}: {e}")
            return
        if shepherd.groups:
            shepherd.groups.begin(part.uid, accepted.spec.cgroup or NO_LIMITS)
        pool.to_flush.add(shepherd)
        self._supervisor.watch_lease(part)

    def _take_back(self, accepted: Accepted, code: str, reason: str) -> None:
        """Refuse a part that its shepherd was not given."""
        self._parts.pop(accepted.part.uid, None)
        self._journal.forget([accepted.part.uid])
        self._supervisor.pool.release(accepted.shepherd)
        self._refuse(accepted.part.uid, code, reason)

    def _template(self, fields: Json) -> Template | str:
        """The template with these fields, or why it is none."""
        encoded = text(fields)
        if len(encoded) > LARGEST_TEMPLATE:
            return f"its template has {len(encoded)} bytes, at most {LARGEST_TEMPLATE}"
        try:
            spec = read_template(fields)
        except ProtocolError as e:
            return str(e)
        self._last_template += 1
        return Template(self._last_template, encoded, spec, native_parts.knows(fields))

    def _refuse(self, uid: str, code: str, reason: str) -> None:
        self._agent.report(Refused(uid, code, reason))


@lru_cache(256)
def key_of(user: User | None, tls: bool) -> ShepherdKey:
    """The key of shepherds for a user.

    PermissionError when this starter cannot become that user, ProtocolError when there is no user.
    """
    if user is None:
        raise ProtocolError("it has no user")
    if not all(0 <= number < 2**32 - 1 for number in (user.uid, user.gid, *user.groups)):
        raise PermissionError(f"user {user.name or user.uid}: no such user")
    own = os.getuid()
    if os.geteuid() != 0 and user.uid != own:
        raise PermissionError(f"user {user.name or user.uid}: the starter, run by user {own}, cannot become another")
    return ShepherdKey(user.uid, user.gid, tuple(sorted(set(user.groups) or {user.gid})), tls)


def log(text: str) -> None:
    """One line to the log (standard error)."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    with contextlib.suppress(OSError):  # a log on a full disk, a journal that restarts
        sys.stderr.write(f"{stamp} lava-starter: {one_line(text)}\n")
        sys.stderr.flush()
