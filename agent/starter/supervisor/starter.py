"""The starter: takes orders from the agent, gives parts to shepherds, and outlives agents.

Rule: one thread, and nothing in its loop waits for a user's file system, a shepherd or the agent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from agent.starter.supervisor import leftovers
from agent.starter.supervisor.agentside import AgentSide
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import OVER, Part
from agent.starter.supervisor.pool import Lane
from agent.starter.supervisor.shepherd_handle import Key
from agent.starter.supervisor.supervisor import Herd
from agent.starter.system import cgroup, kernel, proctree
from agent.starter.system.watch import Wake, Watch
from agent.starter.wire import frames

MAX_JOURNAL = 8 << 20
MAX_TEMPLATES = 1024
TIDY_SECONDS = 10.0


class Starter:
    """The loop, and what each order of the agent does."""

    def __init__(self, host: str, folder: str, socket_path: str) -> None:
        self._boot = kernel.boot_id()
        self._watch = Watch()
        self._journal = Journal(folder)
        former = self._journal.load()
        leftovers.clear(former, self._boot, host)
        # Their shepherds are gone: numbers start anew.
        for part in former.parts.values():
            part.lane = 0
        self._parts: dict[str, Part] = former.parts
        self._seq = former.seq
        self._journal.begin(self._boot, self._seq, self._parts.values())
        self._journal.drop_former_ends()
        self._templates: dict[bytes, int] = {}
        self._last_template = 0
        self._stopping = False
        self._tidy_at = 0.0
        self._orders = {
            "start": self._start,
            "hello": self._hello,
            "list": self._tell_list,
            "go": self._go,
            "task": self._pass_on,
            "end_task": self._pass_on,
            "finish": self._pass_on,
            "signal": self._signal,
            "kill": self._kill,
            "note": self._pass,
            "hosts": self._pass,
            "leave": self._pass,
            "renew": self._renew,
            "forget": self._forget,
            "read": self._read,
            "folders": self._read,
            "append": self._write,
            "deliver": self._write,
        }
        self._wake_on_signals()
        self._agent = AgentSide(socket_path, self._watch, self._obey, log)
        self._herd = Herd(host, self._journal, self._watch, self._parts, self._agent.report, self._agent.answer)

    def run(self) -> None:
        """Until SIGTERM; then nothing of its parts is left."""
        while not self._stopping:
            pause = self._herd.wait_for()
            self._watch.wait(TIDY_SECONDS if pause is None else min(pause, TIDY_SECONDS))
            if self._wake.came():
                self._herd.reap()
            self._herd.on_time()
            self._herd.pool.flush()
            self._agent.flush()
            self._tidy()
        self._agent.close()
        self._herd.stop()

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
        self._herd.pool.retire_idle()
        if self._journal.size > MAX_JOURNAL or self._journal.behind:
            try:
                self._begin_journal_anew()
            except OSError as e:
                log(f"the journal is not begun anew: {e.strerror}")

    def _begin_journal_anew(self) -> None:
        self._journal.begin(self._boot, self._seq, self._parts.values())
        for lane in self._herd.pool.by_pid.values():
            self._journal.shepherd(lane.number, lane.pid, proctree.starttime(lane.pid))

    # -- orders ------------------------------------------------------------------------------------------------------

    def _obey(self, order: dict[str, Any]) -> None:
        obey = self._orders.get(order["do"])
        if obey is None:
            raise ValueError(f"unknown order {order['do']!r}")
        obey(order)

    def _hello(self, _: dict[str, Any]) -> None:
        hello = {"is": "hello", "boot": self._boot, "pid": os.getpid(), "seq": self._seq, "parts": self._list()}
        self._agent.welcome(hello)

    def _tell_list(self, _: dict[str, Any]) -> None:
        self._agent.answer({"is": "list", "parts": self._list()})

    def _go(self, order: dict[str, Any]) -> None:
        for part in self._known([order["uid"]]):
            self._herd.order(part, {"do": "go", "root": order.get("root")})

    def _pass_on(self, order: dict[str, Any]) -> None:
        """Orders about the tasks of a led part: its shepherd reads them."""
        for part in self._known([order["uid"]]):
            self._herd.order(part, order)

    def _signal(self, order: dict[str, Any]) -> None:
        signal_order = {"do": "signal", "sig": int(order["sig"]), "scope": order.get("scope", "groups")}
        signal_order["within"] = float(order.get("within") or 0.0)
        if not 0 < signal_order["sig"] <= 64:
            raise ValueError(f"no signal {order['sig']}")
        for part in self._known(order["uids"]):
            self._herd.order(part, signal_order)

    def _kill(self, order: dict[str, Any]) -> None:
        for part in self._known(order["uids"]):
            self._herd.kill(part, bool(order.get("posts")))

    def _pass(self, order: dict[str, Any]) -> None:
        """What is only for the part's shepherd."""
        for part in self._known([order["uid"]]):
            self._herd.order(part, order)

    def _forget(self, order: dict[str, Any]) -> None:
        self._herd.forget(order["uids"])

    def _list(self) -> list[dict[str, Any]]:
        return [part.status() for part in self._parts.values()]

    def _known(self, uids: list[str]) -> list[Part]:
        return [part for uid in uids if (part := self._parts.get(uid)) is not None]

    def _renew(self, order: dict[str, Any]) -> None:
        deadline, uids = float(order["deadline"]), order.get("uids")
        for part in list(self._parts.values()) if uids is None else self._known(uids):
            if part.deadline is not None and part.state not in OVER:
                part.deadline = deadline
                self._herd.order(part, {"do": "renew", "deadline": deadline})

    def _read(self, order: dict[str, Any]) -> None:
        kind = "folders" if order["do"] == "folders" else "data"
        try:
            self._herd.pool.ask(key_of(order["user"], False), order, kind)
        except (OSError, ValueError) as e:
            self._agent.answer({"is": kind, "id": order["id"], "error": f"{order['path']}: {e}"})

    def _write(self, order: dict[str, Any]) -> None:
        uid = str(order["id"])
        try:
            key = key_of(order["user"], False)
        except PermissionError as e:
            self._agent.report({"uid": uid, "is": "wrote", "error": str(e)})
            return
        self._herd.write(key, {**order, "id": uid})

    # -- start -------------------------------------------------------------------------------------------------------

    def _start(self, order: dict[str, Any]) -> None:
        seq = int(order["seq"])
        templates: dict[str, dict[str, Any]] = order.get("templates") or {}
        stale = seq <= self._seq
        taken: list[tuple[Part, Lane, str, dict[str, Any], dict[str, Any]]] = []
        for own in order["parts"]:
            uid = str(own["uid"])
            known = self._parts.get(uid)
            if known is not None:
                if report := known.again():
                    self._agent.report(report)
            elif stale:
                self._refuse(uid, "stale", f"stale order: {seq} is not after {self._seq}")
            elif self._stopping:
                self._refuse(uid, "stale", "the starter is stopping")
            else:
                self._take(uid, own, templates, taken)
        if not stale:
            self._seq = seq
        if taken and not self._to_disk(seq, taken):
            return
        numbers = {name: self._template(fields) for name, fields in templates.items()}
        numbers[""] = self._template({})
        for part, lane, name, own, fields in taken:
            self._give(part, lane, numbers[name], own, fields)

    def _take(self, uid: str, own: dict[str, Any], templates: dict[str, dict[str, Any]], taken: list[Any]) -> None:
        try:
            name = own.pop("t", None) or ""
            template = templates[name] if name else {}
            fields = {**template, **own}
            link = fields.get("link") or fields.get("star")
            if not all(isinstance(env, dict | None) for env in (template.get("env"), own.get("env"))):
                raise TypeError("env is not an object")
            part = Part(uid, int(fields["key"]), int(fields["attempt"]), 0)
            part.title = str(fields.get("title") or uid)
            deadline = fields.get("deadline")
            part.deadline = float(deadline) if deadline is not None else None
            key = key_of(fields["user"], bool(link or (fields.get("interactive") or {}).get("cert")))
        except PermissionError as e:
            self._refuse(uid, "no_user", str(e))
            return
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            self._refuse(uid, "bad", f"part {uid}: {type(e).__name__}: {e}")
            return
        lane = self._herd.pool.reserve(key)
        part.lane = lane.number
        lane.busy = uid
        self._parts[uid] = part
        taken.append((part, lane, name, own, fields))

    def _to_disk(self, seq: int, taken: list[Any]) -> bool:
        try:
            if self._journal.behind:
                self._begin_journal_anew()
            else:
                self._journal.take(seq, [entry[0] for entry in taken])
        except OSError as e:
            for part, lane, *_ in taken:
                self._parts.pop(part.uid, None)
                self._herd.pool.rest(lane)
                self._refuse(part.uid, "nomem", f"the starter's journal: {e.strerror}")
            return False
        return True

    def _give(self, part: Part, lane: Lane, number: tuple[int, bytes], own: dict[str, Any], fields: dict[str, Any]) -> None:
        pool = self._herd.pool
        try:
            pool.ensure(lane)
        except OSError as e:
            lane.busy = None
            self._parts.pop(part.uid, None)
            self._journal.forget([part.uid])
            self._refuse(part.uid, "nomem", f"no process for {part.title}: {e.strerror}")
            return
        if limits := fields.get("cgroup"):
            part.cgroup = cgroup.create(part.uid, limits, lane.pid)
        lane.send_part(*number, own)
        pool.to_flush.add(lane)
        self._herd.lease(part)

    def _template(self, fields: dict[str, Any]) -> tuple[int, bytes]:
        """A number that means these very fields to every shepherd, and the fields."""
        text = frames.text(fields)
        number = self._templates.get(text)
        if number is None:
            if len(self._templates) >= MAX_TEMPLATES:
                self._templates.clear()
            self._last_template += 1
            number = self._templates[text] = self._last_template
        return number, text

    def _refuse(self, uid: str, code: str, reason: str) -> None:
        self._agent.report({"uid": uid, "is": "refused", "code": code, "reason": reason})


def key_of(user: dict[str, Any], tls: bool) -> Key:
    """The kind of shepherd for a user; PermissionError when this starter cannot become that user."""
    uid, gid = int(user["uid"]), int(user["gid"])
    if not (0 <= uid < 2**32 - 1 and 0 <= gid < 2**32 - 1):
        raise PermissionError(f"user {user.get('name', uid)}: no such user")
    own = os.getuid()
    if os.geteuid() != 0 and uid != own:
        raise PermissionError(f"user {user.get('name', uid)}: the starter, run by user {own}, cannot become another")
    return Key(uid, gid, tuple(sorted({int(g) for g in user.get("groups") or [gid]})), tls)


def log(text: str) -> None:
    """One line to the log (standard error)."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
    sys.stderr.write(f"{stamp} lava-starter: {text}\n")
    sys.stderr.flush()
