"""A shepherd alone, with native code or without, and a starter's side to talk to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.starter.process import ends
from agent.starter.wire.frames import FrameReader, pack, parsed
from tests.support.processes import stat
from tests.support.wait import SLOW

ROOT = Path(__file__).resolve().parents[3]
SHOW = ["/bin/cat", "/proc/self/environ", "/proc/self/limits", "/proc/self/status", "/proc/self/cmdline"]
"""Shows what a task gets; further words become errors, of files that are not there."""
PROGRAM = """
import os, sys
root, sock, end_file, notes, library = sys.argv[1:]
sys.path.insert(0, root)
import socket
from agent.starter.part import native_parts, shepherd
from agent.starter.part.partrun import PartRun
from agent.starter.process import tasks
from agent.starter.system import kernel

def noted(name):
    method = getattr(PartRun, name)
    def run(part, *args):
        with open(notes, "a") as file:
            file.write(f"{name} {part.uid}\\n")
        method(part, *args)
    setattr(PartRun, name, run)

noted("begin"), noted("take_over")
start_by_python = tasks.start
def start(argv, *args):
    with open(notes + ".started", "a") as file:
        file.write(f"{argv[0]}\\n")
    return start_by_python(argv, *args)
tasks.start = start
kernel.become_subreaper()
if library:
    assert not native_parts.load(library)
shepherd.Shepherd(socket.socket(fileno=int(sock)), int(end_file), "here").run()
"""


def below(pid: int) -> list[int]:
    """All processes below one; none below one that is gone."""
    try:
        children = list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except (FileNotFoundError, ProcessLookupError):
        return []
    return children + [one for child in children for one in below(child)]


def has_below(pid: int, count: int) -> bool:
    return len(below(pid)) == count


def are_below(pid: int, names: list[str]) -> bool:
    """Whether those have these names, in order."""
    try:
        return sorted(Path(f"/proc/{one}/comm").read_text().strip() for one in below(pid)) == names
    except (FileNotFoundError, ProcessLookupError):
        return False


def start_time(pid: int) -> int:
    """In clock ticks since boot."""
    return int(stat(pid)[19])


class Shepherd:
    """A shepherd in a process of its own; ``library``: of native code."""

    def __init__(self, folder: Path, library: Path | None) -> None:
        self.folder, self.out = folder, folder / "out"
        self.parts = 0
        self._templates = 0
        self._notes = folder / "notes"
        self._reader = FrameReader()
        self._reports: list[bytes] = []
        self.said = b""
        """The last report as it is written."""
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20 * SLOW)
        end_file = ends.make(str(folder / "1.end"))
        fds = (theirs.fileno(), end_file.fd)
        words = [sys.executable, "-ISc", PROGRAM, str(ROOT), *map(str, fds), str(self._notes), str(library or "")]
        self.process = subprocess.Popen(words, pass_fds=fds)
        theirs.close()
        end_file.close()

    def noted(self) -> list[str]:
        """What the shepherd in Python did: ``begin UID`` or ``take_over UID``."""
        return self._notes.read_text().splitlines() if self._notes.exists() else []

    def started_by_python(self) -> list[str]:
        """The programs of the tasks that Python started, or tried to."""
        notes = Path(f"{self._notes}.started")
        return notes.read_text().splitlines() if notes.exists() else []

    def template(self, drop: tuple[int, ...] = (), **fields: Any) -> bytes:
        """The frame of a further template."""
        self._templates += 1
        made = {
            "user": {"name": "me", "uid": 0, "gid": 0, "groups": [0]},
            "argv": SHOW,
            "env": {"PATH": "/usr/bin:/bin"},
            "cwd": "/tmp",
        }
        fields = {**made, "stdout": {"path": str(self.out)}, **fields}
        return pack({"do": "template", "t": self._templates, "drop": list(drop), "fields": fields})

    def part(self, template: int = 0, **own: Any) -> bytes:
        """The frame of a part, of the last template unless one is named; its uid is ``u`` and a number."""
        self.parts += 1
        fields = {"uid": f"u{self.parts}", "key": self.parts, "attempt": 1, "title": f"{self.parts}", "t": "x", **own}
        return pack({"do": "part", "t": template or self._templates, "p": fields})

    def send(self, *frames: bytes) -> None:
        """Send these frames, or pieces of one, at once."""
        self.socket.sendall(b"".join(frames))

    def next(self) -> dict[str, Any]:
        """The next report."""
        while not self._reports:
            data = self.socket.recv(1 << 16)
            assert data, f"the shepherd has ended: {self.noted()}"
            self._reports += self._reader.bodies(data)
        self.said = self._reports.pop(0)
        return parsed(self.said)

    def report(self, kind: str) -> dict[str, Any]:
        """The next report of this kind; others before it are passed over."""
        while (report := self.next())["is"] != kind:
            pass
        return report

    def outcome(self) -> object:
        """How the part ended or was refused, when it is gone."""
        last: object = None
        while True:
            report = self.next()
            if report["is"] == "refused":
                last = (report["code"], report["reason"].replace(report["uid"], "UID"))
            elif report["is"] == "ended":
                last = (report["end"]["status"], report["end"].get("note"))
            if report["is"] == "gone" or report.get("gone"):
                return last

    def run(self, *frames: bytes) -> dict[str, Any]:
        """Send orders; the end of the part among them."""
        self.send(*frames)
        return self.report("ended")

    def close(self) -> int:
        """Its exit code after the starter has gone."""
        self.socket.close()
        return self.wait()

    def wait(self) -> int:
        """Its exit code when it ends by itself; one that does not is killed."""
        try:
            return self.process.wait(20 * SLOW)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            return self.process.wait()
