"""The shepherd: owns what one part has on this host, one part at a time, as the part's user.

Rule: whatever happens to agent and starter, its processes end by the lease, by an order, or with the starter.
"""

from __future__ import annotations

import base64
import signal
import socket
import time
from typing import Any

from agent.starter.part import writing
from agent.starter.part.interactiverun import InteractiveRun
from agent.starter.part.partrun import PartRun
from agent.starter.process import prepare
from agent.starter.process.phase import Phase
from agent.starter.process.spec import Spec, Template
from agent.starter.system import kernel
from agent.starter.system.watch import Wake, Watch
from agent.starter.terminal.terminal import Terminal
from agent.starter.wire import frames
from agent.starter.wire.pipe import FramePipe

KEPT_TEMPLATES = 16
IDLE_TITLE_AFTER = 0.05


class Shepherd:
    """Its loop: orders from the starter, ended children, the part's files and timers."""

    def __init__(self, sock: socket.socket, end_fd: int, host: str) -> None:
        self._watch = Watch()
        self._starter = FramePipe(sock, self._watch)
        self._end_fd = end_fd
        self._host = host
        self._templates: dict[int, Template] = {}
        self._part: PartRun | None = None
        self._terminals: list[Terminal] = []
        """Of parts that are gone, with output that their users have not read yet."""
        self._alone = False
        self._titled = 1
        self._watch.add(sock.fileno(), self._from_starter)

    def run(self) -> None:
        """Until the starter lets it go, or is gone and nothing is left."""
        signal.signal(signal.SIGCHLD, lambda *_: None)
        wake = Wake(self._watch)
        while not (self._alone and self._part is None and not self._terminals):
            if not self._alone and not self._starter.flush():
                self._starter_gone()
                continue
            self._watch.wait(self._pause())
            ended = wake.came()
            if self._part and ended:
                self._part.look()
            if self._part:
                self._part.on_time()
            for terminal in self._terminals:
                terminal.on_time()
            self._terminals = [terminal for terminal in self._terminals if not terminal.done]
            self._rest_if_gone()

    def _pause(self) -> float | None:
        """How long to wait. The next part often comes at once: only one that rests is shown as idle."""
        if self._part:
            return self._part.wait_for()
        if not self._titled:
            due = min((at for terminal in self._terminals if (at := terminal.wake_at()) is not None), default=None)
            return None if due is None else max(0.0, due - time.monotonic())
        if self._titled == 1:
            kernel.set_title("lava-shepherd (idle)")
        self._titled -= 1
        return IDLE_TITLE_AFTER

    def _rest_if_gone(self) -> None:
        if self._part and self._part.phase is Phase.GONE:
            if self._part.terminal and not self._part.terminal.done:
                self._terminals.append(self._part.terminal)
            self._part = None

    def _from_starter(self, _: int) -> None:
        try:
            orders = self._starter.read()
        except frames.FrameError:
            orders = None
        if orders is None:
            self._starter_gone()
            return
        for order in orders:
            self._obey(order)
            self._rest_if_gone()

    def _starter_gone(self) -> None:
        """Nobody is left to report to: ends that are there go to disk, the rest is killed without one."""
        if self._alone:
            return
        self._alone = True
        self._starter.close()
        if self._part:
            self._part.look()
            self._part.silent = True
            self._part.kill()
            self._rest_if_gone()

    def _tell(self, report: dict[str, Any] | bytes) -> None:
        if self._alone:
            return
        if isinstance(report, bytes):
            self._starter.send_frame(frames.frame(report))
        else:
            self._starter.send(report)

    def _obey(self, order: dict[str, Any]) -> None:
        do = order["do"]
        if do == "part":
            self._begin(order)
        elif do == "template":
            if len(self._templates) >= KEPT_TEMPLATES:
                self._templates.pop(next(iter(self._templates)))
            self._templates[order["t"]] = Template(order["fields"])
        elif do == "read":
            self._tell(_read(order))
        elif do == "folders":
            self._tell(_folders(order))
        elif do in ("append", "deliver"):
            self._tell(writing.write(order))
        elif self._part is not None and order.get("uid") == self._part.uid:
            self._obey_for_part(self._part, do, order)

    def _obey_for_part(self, part: PartRun, do: str, order: dict[str, Any]) -> None:
        if do == "kill":
            self._tell({"uid": part.uid, "is": "killing"})
            part.kill(bool(order.get("posts")))
        elif do == "signal":
            if order.get("scope") == "catching":
                part.signals.ask(int(order["sig"]), float(order.get("within") or 0.0))
            else:
                part.signals.send(int(order["sig"]), order.get("scope") == "tasks")
        elif do == "go":
            part.go(order.get("root"))
        elif do == "task":
            part.start_task(int(order["rank"]), int(order["number"]), float(order.get("delay") or 0.0))
        elif do == "end_task":
            part.signals.end_task(int(order["rank"]))
        elif do == "finish":
            part.finish(order.get("first"), bool(order.get("leave")))
        elif do in ("note", "hosts", "leave"):
            part.told(order)
        elif do == "renew":
            part.renew(float(order["deadline"]))

    def _begin(self, order: dict[str, Any]) -> None:
        try:
            spec = Spec(self._templates[order["t"]], order["p"])
        except (LookupError, TypeError, ValueError, AttributeError) as e:
            uid = order["p"].get("uid")
            self._tell({"uid": uid, "is": "refused", "code": "bad", "reason": f"part {uid}: {type(e).__name__}: {e}"})
            self._tell({"uid": uid, "is": "gone"})
            return
        self._titled = 2
        kernel.set_title(f"lava-shepherd {spec.get('title', '')}")
        kind = InteractiveRun if spec.get("interactive") else PartRun
        self._part = kind(spec, self._end_fd, self._host, self._watch, self._tell)
        self._part.begin()


def _folders(order: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"is": "folders", "id": order["id"], "names": []}
    try:
        answer["names"] = prepare.folders_with(str(order["path"]), str(order["prefix"]), str(order["having"]))
    except (OSError, ValueError) as e:
        answer["error"] = getattr(e, "strerror", None) or str(e)
    return answer


def _read(order: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = {"is": "data", "id": order["id"]}
    path = str(order.get("path"))
    try:
        data, size = prepare.read_slice(path, int(order.get("offset") or 0), int(order.get("limit") or 0))
        answer.update(data=base64.b64encode(data).decode("ascii"), size=size)
    except (OSError, ValueError) as e:
        answer["error"] = f"{path}: {getattr(e, 'strerror', None) or e}"
    return answer
