"""The starter: takes orders from the agent, gives parts to shepherds, and outlives agents.

Rule: one thread, and nothing in its loop waits for a user's file system, a shepherd or the agent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from agent.starter.protocol import orders
from agent.starter.protocol.codec import Json, ProtocolError, prepare, text
from agent.starter.protocol.orders import Order, ToPart, ToShepherd
from agent.starter.protocol.part import PartSpec, User, read_part, read_template, template_of, uid_of
from agent.starter.protocol.reports import (
    End,
    Ended,
    EndedTask,
    Hello,
    Listed,
    PartStatus,
    Refused,
    RunningTask,
    Started,
    Wrote,
)
from agent.starter.supervisor import leftovers
from agent.starter.supervisor.agentside import AgentSide
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey
from agent.starter.supervisor.supervisor import Supervisor, failed
from agent.starter.system import cgroup, kernel, proctree
from agent.starter.system.watch import Wake, Watch

MAX_JOURNAL = 8 << 20
MAX_TEMPLATES = 1024
TIDY_SECONDS = 10.0


class Template(NamedTuple):
    """What parts share, under the number that it has for every shepherd."""

    number: int
    text: bytes
    """Its fields as JSON."""
    spec: PartSpec


class Taken(NamedTuple):
    """A part of a start order that is to be given to a shepherd."""

    part: Part
    shepherd: ShepherdHandle
    template: Template
    own: Json
    """As it came, for the shepherd to read."""
    spec: PartSpec


class Starter:
    """The loop, and what each order of the agent does."""

    def __init__(self, host: str, folder: str, socket_path: str) -> None:
        self._boot = kernel.boot_id()
        self._watch = Watch()
        # Before the first fork: every shepherd has the functions that each part needs.
        prepare(PartSpec, orders.Begin, orders.Template, Ended, End, EndedTask, RunningTask, Started)
        self._journal = Journal(folder)
        former = self._journal.load()
        leftovers.clear(former, self._boot, host)
        # Their shepherds are gone: numbers start anew.
        for part in former.parts.values():
            part.shepherd = 0
        self._parts: dict[str, Part] = former.parts
        self._seq = former.seq
        self._journal.begin(self._boot, self._seq, self._parts.values())
        self._journal.drop_former_ends()
        self._templates: dict[bytes, Template] = {}
        self._last_template = 0
        self._stopping = False
        self._tidy_at = 0.0
        self._wake_on_signals()
        self._agent = AgentSide(socket_path, self._watch, self._obey, log)
        self._supervisor = Supervisor(host, self._journal, self._watch, self._parts, self._agent.report, self._agent.answer)

    def run(self) -> None:
        """Until SIGTERM; then nothing of its parts is left."""
        while not self._stopping:
            pause = self._supervisor.wait_for()
            self._watch.wait(TIDY_SECONDS if pause is None else min(pause, TIDY_SECONDS))
            if self._wake.came():
                self._supervisor.reap()
            self._supervisor.on_time()
            self._supervisor.pool.flush()
            self._agent.flush()
            self._tidy()
        self._agent.close()
        self._supervisor.stop()

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
        if self._journal.size > MAX_JOURNAL or self._journal.behind:
            try:
                self._begin_journal_anew()
            except OSError as e:
                log(f"the journal is not begun anew: {e.strerror}")

    def _begin_journal_anew(self) -> None:
        self._journal.begin(self._boot, self._seq, self._parts.values())
        for one in self._supervisor.pool.by_pid.values():
            self._journal.shepherd(one.number, one.pid, proctree.starttime(one.pid))

    # -- orders ------------------------------------------------------------------------------------------------------

    def _obey(self, order: Order | ToShepherd) -> None:
        match order:
            case orders.Start():
                self._start(order)
            case orders.Greet():
                self._agent.welcome(Hello(self._boot, os.getpid(), self._seq, self._list()))
            case orders.List():
                self._agent.answer(Listed(self._list()))
            case orders.Forget(uids):
                self._supervisor.forget(uids)
            case orders.Read() | orders.FindFolders():
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
                    self._supervisor.kill(part, posts)
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

    def _read(self, order: orders.Read | orders.FindFolders) -> None:
        try:
            self._supervisor.pool.ask(key_of(order.user, False), order)
        except (OSError, ValueError) as e:
            self._agent.answer(failed(order, f"{order.path}: {e}"))

    def _write(self, order: orders.Write) -> None:
        try:
            key = key_of(order.user, False)
        except PermissionError as e:
            self._agent.report(Wrote(uid=order.id, error=str(e)))
            return
        self._supervisor.write(key, order)

    # -- start -------------------------------------------------------------------------------------------------------

    def _start(self, order: orders.Start) -> None:
        seq = order.seq
        templates: dict[str, Template] = {}
        stale = seq <= self._seq
        taken: list[Taken] = []
        for own in order.parts:
            uid = uid_of(own)
            known = self._parts.get(uid)
            if known is not None:
                if report := known.again():
                    self._agent.report(report)
            elif stale:
                self._refuse(uid, "stale", f"stale order: {seq} is not after {self._seq}")
            elif self._stopping:
                self._refuse(uid, "stale", "the starter is stopping")
            else:
                taken += self._take(uid, own, order, templates)
        if not stale:
            self._seq = seq
        if taken and not self._to_disk(seq, taken):
            return
        for one in taken:
            self._give(one)

    def _take(self, uid: str, own: Json, order: orders.Start, templates: dict[str, Template]) -> list[Taken]:
        """The part, or nothing where it is refused. ``templates``: those of the order that were read before."""
        name = template_of(own)
        try:
            if name not in templates:
                templates[name] = self._template(order.templates.get(name) if name else {})
            spec = read_part(templates[name].spec, own)
            key = key_of(spec.user, spec.needs_tls)
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
        return [Taken(part, shepherd, templates[name], own, spec)]

    def _to_disk(self, seq: int, taken: list[Taken]) -> bool:
        try:
            if self._journal.behind:
                self._begin_journal_anew()
            else:
                self._journal.take(seq, [one.part for one in taken])
        except OSError as e:
            for one in taken:
                self._parts.pop(one.part.uid, None)
                self._supervisor.pool.rest(one.shepherd)
                self._refuse(one.part.uid, "nomem", f"the starter's journal: {e.strerror}")
            return False
        return True

    def _give(self, taken: Taken) -> None:
        pool, part, shepherd = self._supervisor.pool, taken.part, taken.shepherd
        try:
            pool.ensure(shepherd)
        except OSError as e:
            shepherd.busy = None
            self._parts.pop(part.uid, None)
            self._journal.forget([part.uid])
            self._refuse(part.uid, "nomem", f"no process for {part.title}: {e.strerror}")
            return
        if taken.spec.cgroup:
            part.cgroup = cgroup.create(part.uid, taken.spec.cgroup, shepherd.pid)
        shepherd.send_part(taken.template.number, taken.template.text, taken.own)
        pool.to_flush.add(shepherd)
        self._supervisor.lease(part)

    def _template(self, fields: Json | None) -> Template:
        """Read once for all orders that bring these very fields; ProtocolError when they are none."""
        encoded = text(fields)
        found = self._templates.get(encoded)
        if found is None:
            spec = read_template(fields)
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._last_template += 1
            found = self._templates[encoded] = Template(self._last_template, encoded, spec)
        return found

    def _refuse(self, uid: str, code: str, reason: str) -> None:
        self._agent.report(Refused(uid, code, reason))


def key_of(user: User | None, tls: bool) -> ShepherdKey:
    """The kind of shepherd for a user; PermissionError when this starter cannot become that user."""
    if user is None:
        raise ProtocolError("it has no user")
    if not (0 <= user.uid < 2**32 - 1 and 0 <= user.gid < 2**32 - 1):
        raise PermissionError(f"user {user.name or user.uid}: no such user")
    own = os.getuid()
    if os.geteuid() != 0 and user.uid != own:
        raise PermissionError(f"user {user.name or user.uid}: the starter, run by user {own}, cannot become another")
    return ShepherdKey(user.uid, user.gid, tuple(sorted(set(user.groups) or {user.gid})), tls)


def log(text: str) -> None:
    """One line to the log (standard error)."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    sys.stderr.write(f"{stamp} lava-starter: {text}\n")
    sys.stderr.flush()
