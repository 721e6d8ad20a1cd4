"""A real starter in a folder of its own, and an agent's side to talk to it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.starter.wire.frames import FrameReader, pack
from tests.support.daemons.unit_groups import inside, keeps, make_unit_group, remove_unit_group
from tests.support.processes import is_alive
from tests.support.wait import SLOW, wait_until

ENTRY = Path(__file__).resolve().parents[3] / "agent" / "starter" / "__main__.py"
NOBODY = {"name": "nobody", "uid": 65534, "gid": 65534, "groups": [65534]}
ME = {"name": "me", "uid": os.getuid(), "gid": os.getgid(), "groups": sorted({os.getgid(), *os.getgroups()})}
SHELL_PATH = "/usr/bin:/bin"


def children(pid: int) -> list[int]:
    """Its children, zombies left out."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [c for c in map(int, text.split()) if is_alive(c)]


def is_shepherd(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "lava-shepherd\n"
    except OSError:
        return False


def boottime() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Rig:
    """One starter process; ``connect`` says hello; reports are kept by uid.

    As a service's it has a group of cgroups to itself, where they are of version 2.
    """

    def __init__(self, folder: Path, host: str = "hostA") -> None:
        self.folder = folder
        self.host = host
        self.outputs = folder
        self.under: list[str] = []
        """Words of a program that becomes the starter, before the starter's own."""
        self._units: list[Path] = []
        self.socket_path = str(folder / f"{host}.sock")
        self.process: subprocess.Popen[bytes] | None = None
        self.sock: socket.socket | None = None
        self.reader = FrameReader()
        self.reports: dict[str, list[dict[str, Any]]] = {}
        self.frames: list[dict[str, Any]] = []
        self.hello: dict[str, Any] = {}
        self.seq = 0

    # -- process -----------------------------------------------------------------------------------------------------

    def start(self, user: int | None = None, *more: str) -> Rig:
        """Start it (as another user, if asked; with ``more`` options) and connect."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket_path)
        args = ["--host", self.host, "--dir", str(self.folder / f"spool-{self.host}"), "--socket", self.socket_path]
        args += ["--pidfile", str(self.folder / f"{self.host}.pid"), "--log", str(self.folder / f"{self.host}.log")]
        as_user: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": [user]}
        unit = make_unit_group() if user is None else None
        self._units += [unit] if unit is not None else []
        lead = [*(inside(unit) if unit is not None else ()), *self.under]
        self.process = subprocess.Popen([*lead, sys.executable, "-I", "-S", str(ENTRY), *args, *more], **as_user)
        wait_until(lambda: os.path.exists(self.socket_path), 20, "the starter's socket")
        self.connect()
        return self

    def connect(self) -> dict[str, Any]:
        """Connect again and say hello: the answer."""
        self.disconnect()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.socket_path)
        self.reader = FrameReader()
        self.send({"do": "hello"})
        self.hello = self.frame("hello")
        self.seq = max(self.seq, self.hello["seq"])
        return self.hello

    def disconnect(self) -> None:
        if self.sock is not None:
            self.sock.close()
            self.sock = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """kill -9 the starter."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM: its exit code."""
        self.disconnect()
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        code = self.process.wait(30 * SLOW)
        for unit in self._units:
            remove_unit_group(unit)
        return code

    def shepherds(self) -> list[int]:
        return [pid for pid in children(self.pid) if is_shepherd(pid)]

    def forkers(self) -> list[int]:
        """Who forks shepherds for the starter: that without Python first."""
        return [pid for pid in children(self.pid) if not is_shepherd(pid)]

    def keeps(self, limit: str) -> bool:
        """Whether cgroups keep such a limit of its parts: memory, CPU time, processes, device files."""
        return keeps(self.log(), limit)

    def log(self) -> str:
        return (self.folder / f"{self.host}.log").read_text()

    # -- talk --------------------------------------------------------------------------------------------------------

    def send(self, obj: dict[str, Any]) -> None:
        assert self.sock is not None
        self.sock.settimeout(30 * SLOW)
        self.sock.sendall(pack(obj))

    def pump(self, timeout: float = 0.02) -> bool:
        """Take what came; False when the connection is closed."""
        assert self.sock is not None
        self.sock.settimeout(timeout)
        try:
            data = self.sock.recv(1 << 20)
        except TimeoutError:
            return True
        except OSError:
            return False
        frames: list[dict[str, Any]] = self.reader.feed(data)
        for frame in frames:
            self.frames.append(frame)
            for report in frame.get("reports", ()):
                self.reports.setdefault(report["uid"], []).append(report)
        return bool(data)

    def frame(self, kind: str) -> dict[str, Any]:
        """The next frame that is no reports."""

        def found() -> dict[str, Any] | None:
            self.pump()
            for i, frame in enumerate(self.frames):
                if frame["is"] == kind:
                    return self.frames.pop(i)
            return None

        answer = wait_until(found, 20, f"a {kind} frame")
        assert answer is not None
        return answer

    def report(self, uid: str, kind: str, timeout: float = 20) -> dict[str, Any]:
        """The first report of a kind about a part."""

        def found() -> dict[str, Any] | None:
            self.pump()
            return next((r for r in self.reports.get(uid, ()) if r["is"] == kind), None)

        answer = wait_until(found, timeout, lambda: f"{kind} of {uid}; came: {self.reports.get(uid)}; {self.log()}")
        assert answer is not None
        return answer

    def end(self, uid: str, timeout: float = 20) -> dict[str, Any]:
        """END of a part."""
        end: dict[str, Any] = self.report(uid, "ended", timeout)["end"]
        return end

    def gone(self, uid: str, timeout: float = 20) -> None:
        """Nothing of it is left."""

        def found() -> bool:
            self.pump()
            return any(r["is"] == "gone" or r.get("gone") for r in self.reports.get(uid, ()))

        wait_until(found, timeout, lambda: f"{uid} gone; came: {self.reports.get(uid)}")

    def pid_of(self, uid: str) -> int:
        """The pid of its (first) task."""
        return int(self.report(uid, "started")["tasks"][0]["pid"])

    def known(self) -> dict[str, dict[str, Any]]:
        """PartStatus by uid."""
        self.send({"do": "list"})
        return {p["uid"]: p for p in self.frame("list")["parts"]}

    def order(self, *parts: dict[str, Any], templates: dict[str, Any] | None = None, seq: int | None = None) -> None:
        """A start order."""
        self.seq += 1
        number = self.seq if seq is None else seq
        self.send({"do": "start", "seq": number, "templates": templates or {}, "parts": list(parts)})

    def part(self, uid: str, argv: list[str] | str, **more: Any) -> dict[str, Any]:
        """A part that runs ``argv`` (a string: a shell command) as this user, output to FOLDER/UID.out."""
        fields: dict[str, Any] = {
            "uid": uid,
            "key": 7 << 32 | 1,
            "attempt": 1,
            "user": ME,
            "title": "1[7]",
            "argv": ["/bin/sh", "-c", argv] if isinstance(argv, str) else argv,
            "env": {"PATH": SHELL_PATH},
            "cwd": str(self.folder),
            "umask": 0o022,
            "stdout": {"path": self.out(uid), "append": False},
        }
        return {**fields, **more}

    def out(self, uid: str) -> str:
        return str(self.outputs / f"{uid}.out")

    def text(self, uid: str) -> str:
        """What is in its output file now."""
        try:
            with open(self.out(uid), encoding="utf-8", errors="surrogateescape") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def run(self, uid: str, argv: list[str] | str, **more: Any) -> dict[str, Any]:
        """Run a part to its end: END."""
        self.order(self.part(uid, argv, **more))
        end = self.end(uid)
        self.gone(uid)
        return end


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A starter of the test's own, which must end well unless the test ended it."""
    one = Rig(tmp_path).start()
    yield one
    if one.process is not None and one.process.poll() is None:
        assert one.stop() == 0
