"""A cluster to measure: ``lava up`` in a folder of its own, CPU time of each daemon, and the local socket in this process.

Rule: whatever is started here ends with it, and nothing is deleted before it (deleting many files makes new ones dearer).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from agent.starter.system.proctree import below
from agent.starter.system.proctree import children as children_of
from benchmarks.programs import PATIENCE, wait
from cli.local.daemons import children, find_pid
from cli.local.folder import ROOT, Folder, commands_folder

TICKS = os.sysconf("SC_CLK_TCK")
ALONE = ("lavad", "agent", "starter")
"""Daemons whose children are counted under names of their own."""
AGAIN = 0.05
"""Seconds until a query that has to wait is asked again."""
CHUNKS, CHUNK_SIZE = "chunks", 8
"""A queue whose jobs go in chunks, and how many of them together (CHUNK_JOB_SIZE)."""
QUIET = 0.03
"""CPU seconds in a pause below which daemons count as idle."""


class Wire:
    """One connection to lavad, as a command has it; asks may be sent ahead of their answers."""

    def __init__(self, path: Path) -> None:
        self._link = socket.socket(socket.AF_UNIX)
        self._link.settimeout(PATIENCE)
        self._link.connect(str(path))
        self._file = self._link.makefile("rb", buffering=1 << 18)

    def send(self, frames: Iterable[dict[str, Any]]) -> None:
        """Send asks without waiting."""
        bodies = (json.dumps(frame, separators=(",", ":")).encode() for frame in frames)
        self._link.sendall(b"".join(len(body).to_bytes(4, "big") + body for body in bodies))

    def take(self) -> dict[str, Any]:
        """The next answer frame."""
        head = self._file.read(4)
        if len(head) < 4:
            raise ConnectionError("lavad closed the connection")
        answer: dict[str, Any] = json.loads(self._file.read(int.from_bytes(head, "big")))
        return answer

    def ask(self, **frame: Any) -> dict[str, Any]:
        """One changing ask and its answer."""
        self.send([frame])
        answer = self.take()
        if "ok" not in answer:
            raise SystemExit(f"{frame.get('ask')}: {answer}")
        found: dict[str, Any] = answer["ok"]
        return found

    def query(self, command: str, options: dict[str, Any] | None = None, words: Iterable[str] = ()) -> str:
        """What a listing prints; asked again where the user has too many queries under way, as commands do."""
        ask = {"ask": "query", "command": command, "options": options or {}, "words": list(words)}
        self.send([ask])
        pieces: list[str] = []
        while "exit" not in (answer := self.take()):
            if "standby" in answer:
                raise ConnectionError("lavad is not the master yet")
            if "later" in answer:
                time.sleep(AGAIN)
                self.send([ask])
            pieces.append(answer.get("out") or answer.get("err") or "")
        return "".join(pieces)

    def drained(self, queue: str = "normal", pause: float = 0.005) -> None:
        """Wait until a queue has no jobs."""
        options = {"noheader": True, "o": "njobs"}
        wait(lambda: self.query("bqueues", options, [queue]).strip() == "0", "all jobs to end", pause)

    def array(self, count: int, **options: Any) -> None:
        """Submit an array of no-ops and wait for its end, of which lavad tells once: a look now and then would cost it CPU."""
        job = self.ask(**submission(J=f"a[1-{count}]", **options))["job"]
        self.ask(ask="wait", job=job, until="finished")

    def fileno(self) -> int:
        """To wait for its next answer; no answer may be left unread then."""
        return self._link.fileno()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self._link.close()


def submission(command: str = "/bin/true", **options: Any) -> dict[str, Any]:
    """The ask that bsub would send (LSF option names; ``o`` is /dev/null unless given)."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    options = {"o": "/dev/null", **options}
    return {
        "ask": "submit",
        "uuid": os.urandom(16).hex(),
        "command": command,
        "env": env,
        "cwd": "/tmp",
        "home": "/root",
        "umask": 0o022,
        "shell": "/bin/sh",
        "options": options,
    }


def allow_many(folder: Folder) -> None:
    """MAX_USER_RECORDS of a cluster, in its files."""
    params = folder.conf / "lsb.params"
    params.write_text(params.read_text().replace("Begin Parameters\n", "Begin Parameters\nMAX_USER_RECORDS = 10000000\n"))


class Cluster:
    """Use it in a ``with``."""

    def __init__(self, hosts: int = 1, slots: int = 64, options: tuple[str, ...] = ()) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="lava-bench-"))
        self._root.chmod(0o755)
        self.folder = Folder(self._root / "c")
        self._words = ["--hosts", str(hosts), "--slots", str(slots), *options]
        self.environ = dict(os.environ)

    def __enter__(self) -> Cluster:
        self.up()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._lava("down")
        if error is None:
            shutil.rmtree(self._root, ignore_errors=True)
        else:
            print(f"the cluster's logs are kept in {self.folder.log}", flush=True)

    def up(self) -> None:
        """Start what is not running."""
        done = self._lava("up", *self._words)
        if done.returncode:
            raise SystemExit(f"lava up failed: {done.stderr}")
        for line in done.stdout.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            self.environ[name] = value.strip("'")

    def _lava(self, what: str, *words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "cli.lava", what, "--dir", str(self.folder.path), *words]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)

    def wire(self) -> Wire:
        """A connection to lavad."""
        return Wire(self.folder.run / "lavad.sock")

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One command as a user runs it; ends the benchmark if it fails."""
        line = [str(commands_folder() / words[0]), *words[1:]]
        return subprocess.run(line, env=self.environ, capture_output=True, text=True, check=True, timeout=PATIENCE)

    def allow_many(self) -> None:
        """Let a user have as many pending jobs as a benchmark submits."""
        allow_many(self.folder)
        self.command("badmin", "reconfig", "-f")

    def add_chunk_queue(self) -> None:
        """Add the queue CHUNKS, whose jobs are dispatched CHUNK_SIZE to a slot."""
        with (self.folder.conf / "lsb.queues").open("a") as file:
            file.write(f"\nBegin Queue\nQUEUE_NAME = {CHUNKS}\nPRIORITY = 30\nCHUNK_JOB_SIZE = {CHUNK_SIZE}\nEnd Queue\n")
        self.command("badmin", "reconfig", "-f")

    def submit_many(self, count: int, links: int = 16, **options: Any) -> None:
        """Submit ``count`` separate jobs (LSF option names) over a few connections, as fast as they are taken."""
        wires = [self.wire() for _ in range(links)]
        for begin in range(0, count, 2000):
            frames = [submission(**options) for _ in range(min(2000, count - begin))]
            for at, wire in enumerate(wires):
                wire.send(frames[at::links])
            for at, wire in enumerate(wires):
                for _ in frames[at::links]:
                    if "ok" not in (answer := wire.take()):
                        raise SystemExit(f"submit: {answer}")
        for wire in wires:
            wire.close()

    def settle(self, pause: float = 0.3) -> None:
        """Wait until the daemons are done with what came before, and have used next to no CPU for ``pause`` seconds."""
        used = [-1.0]

        def quiet() -> bool:
            before, used[0] = used[0], sum(self.cpu().values())
            return used[0] - before < QUIET

        wait(quiet, "the daemons to be idle", pause)

    def pids(self) -> dict[str, int]:
        """lavad, its replicas and the process of its log of events, agent, starter."""
        lavad = find_pid(self.folder, "lavad")
        found = {"lavad": lavad}
        # not the forks of these, which have their names
        found |= {comm(pid).removeprefix("lava-"): pid for pid in children_of(lavad)}
        found["agent"] = find_pid(self.folder, "agent-host1")
        found["starter"] = find_pid(self.folder, "starter-host1")
        return found

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each daemon so far, of lavad's processes with their forks, in which long queries are answered.

        ``shepherds``: of all there are; ``jobs``: of what they and the starter reaped.
        """
        pids = self.pids()
        used = {name: _ticks(pid)[0] if name in ALONE else with_forks(pid) for name, pid in pids.items()}
        if "starter" in pids:
            below = [(comm(pid), pid) for pid in children([pids["starter"]])]
            used["starter"] = sum(_ticks(pid)[0] for name, pid in below if name == "lava-starter")
            shepherds = [pid for name, pid in below if name == "lava-shepherd"]
            used["shepherds"] = sum(map(_on_cpu, shepherds))
            used["jobs"] = sum(_ticks(pid)[1] for pid in shepherds) + _ticks(pids["starter"])[1]
        return used

    def rss(self) -> dict[str, int]:
        """Resident bytes of each daemon."""
        return {name: size for name, pid in self.pids().items() if (size := resident(pid))}

    def private(self) -> dict[str, int]:
        """Bytes of each daemon that it does not share with others."""
        return {name: _private(pid) for name, pid in self.pids().items()}


def _private(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


def with_forks(pid: int) -> float:
    """CPU seconds of a process, of its forks that have ended, and of those that run."""
    return sum(sum(_ticks(one)) for one in (pid, *below([pid])))


def comm(pid: int) -> str:
    """The name of a process, "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _on_cpu(pid: int) -> float:
    """CPU seconds of a process; zero if it is gone. A shepherd uses less than a clock tick for many jobs."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def _ticks(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of what it has reaped; zeros if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0, 0.0
    return sum(map(int, fields[11:13])) / TICKS, sum(map(int, fields[13:15])) / TICKS


def resident(pid: int) -> int:
    """Bytes; 0 if it is gone, as the child that answers a long query may be."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
