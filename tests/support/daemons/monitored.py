"""A stand-in for a shepherd with real ranks below it: it is a subreaper, starts what it is told to, and reaps."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.monitor.procscan import read_proc
from agent.monitor.usage import PartRoots

SHEPHERD = """
import ctypes, json, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "start":
        env = order["env"] if order["env"] is not None else dict(os.environ)
        out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        files = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, out, 1)]
        pid = os.posix_spawn(order["argv"][0], order["argv"], env, file_actions=files, setsid=True)
        os.close(out)
        print(pid, flush=True)
    else:
        print(os.waitpid(order["pid"], 0)[1], flush=True)
"""


class Shepherded:
    """One part: ``start`` its ranks, ``roots`` for the sampler; use as a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SHEPHERD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.tasks: list[tuple[int, int, int]] = []
        self.strays: list[int] = []

    def __enter__(self) -> Shepherded:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [*(pid for _, pid, _ in self.tasks), *self.strays]:
            for target in (pid, -pid):  # with what it has forked
                with contextlib.suppress(ProcessLookupError):
                    os.kill(target, signal.SIGKILL)
        self._process.kill()
        self._process.communicate()

    def start(self, argv: list[str], env: dict[str, str] | None = None) -> int:
        """Start the next rank; its pid."""
        rank = len(self.tasks)
        pid = int(self._tell(do="start", argv=argv, env=env, out=str(self._folder / f"out.{rank}")))
        proc = read_proc(pid)
        assert proc is not None
        self.tasks.append((rank, pid, proc.start))
        return pid

    def python(self, text: str, *args: str, env: dict[str, str] | None = None) -> int:
        """Start a rank that runs a Python text."""
        return self.start([sys.executable, "-I", "-S", "-c", text, *args], env)

    def reap(self, pid: int) -> int:
        """Wait until a rank ends; its wait status."""
        return int(self._tell(do="reap", pid=pid))

    def said(self, rank: int = 0) -> list[str]:
        """The whole lines that a rank has written."""
        text = (self._folder / f"out.{rank}").read_text()
        return text[: text.rfind("\n") + 1].splitlines()

    def roots(self, memory_limit: int = 0) -> PartRoots:
        return PartRoots(101, 1, tuple(self.tasks), self._process.pid, memory_limit)

    def _tell(self, **order: Any) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()
