"""A real agent with its starter in a folder, for a test to start, kill and start again."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proto import agent_pb2 as pb
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
ME = pwd.getpwuid(os.getuid()).pw_name


class AgentHost:
    """One host; ``masters`` are the addresses of its masters."""

    def __init__(self, folder: Path, *masters: str, name: str = "h1", conf: str = "") -> None:
        self.folder = folder
        self.name = name
        self.masters = masters
        self.run = folder / "run"
        self.spool = folder / "spool"
        self.log = folder / "log" / f"agent-{name}.log"
        for path in (self.run, folder / "conf", folder / "log", folder / "work"):
            path.mkdir(parents=True, exist_ok=True)
        (folder / "conf" / "lsf.conf").write_text(f"LSF_ROOT_USER=Y\n{conf}")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *more: str) -> None:
        """Start the agent, with ``more`` options."""
        folders = ["--conf", self.folder / "conf", "--run", self.run, "--spool", self.spool, "--log", self.log]
        argv = [sys.executable, "-m", "agent.main", "--host", self.name, "--master", ",".join(self.masters), *map(str, folders)]
        argv += ["--pidfile", str(self.run / f"agent-{self.name}.pid"), *more]
        self.process = subprocess.Popen(argv, cwd=ROOT)

    def kill(self) -> None:
        """kill -9 of the agent alone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def starter_pid(self) -> int:
        """The starter's process id, 0 when there is none."""
        try:
            return int((self.run / f"starter-{self.name}.pid").read_text())
        except (FileNotFoundError, ValueError):
            return 0

    def stop(self) -> None:
        """End agent, starter and jobs."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        pid = self.starter_pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not self.starter_pid() or not os.path.exists(f"/proc/{pid}"), 30, "the starter's end")

    def text(self, master: FakeMaster, command: str, **fields: object) -> pb.JobText:
        """A job text with what a plain job has."""
        given: dict[str, object] = {
            "user": ME,
            "env": {"PATH": os.environ["PATH"], "HOME": str(self.folder)},
            "cwd": str(self.folder / "work"),
            "queue": "normal",
            "project": "default",
            "from_host": "sub1",
            "cluster": "c1",
            "submitted": 1_700_000_000.0,
            "umask": 0o022,
            "limits": pb.Limits(core=-1),
            "direct_output": True,
            "terminate_interval": 1,
        }
        return pb.JobText(id=master.next_text(), job=7, command=command, **(given | fields))  # type: ignore[arg-type]


def start_order(master: FakeMaster, text: pb.JobText, key: int = 7, attempt: int = 1, **fields: object) -> pb.Order:
    """A start of a one-host part of a job."""
    given: dict[str, object] = {
        "sequence": master.next_sequence(),
        "text": text.id,
        "hosts": [pb.HostSlots(host="h1", slots=1)],
        "restart": -1,
    }
    start = pb.Start(**(given | fields))  # type: ignore[arg-type]
    return pb.Order(key=key, attempt=attempt, uid=uuid.uuid4().hex, start=start)


@contextlib.contextmanager
def fake_master() -> Iterator[FakeMaster]:
    """A master for as long as the context lasts."""
    one = FakeMaster()
    yield one
    one.stop()


@contextlib.contextmanager
def running(host: AgentHost, heard: Callable[[], object]) -> Iterator[AgentHost]:
    """A host that runs, and that its master has heard, for as long as the context lasts."""
    host.start()
    try:
        wait_until(heard, 30, "the agent")
        yield host
    finally:
        host.stop()


def ask_for_checkpoint(master: FakeMaster, order: pb.Order, number: int, kill_after: bool = False) -> pb.Granted:
    """The answer to the request with this number, the first one's being 1."""
    request = pb.Signal(number=number, kind="checkpoint", kill_after=kill_after)
    master.order(pb.Order(key=order.key, attempt=order.attempt, uid=order.uid, signal=request))
    wait_until(lambda: len(master.of(order.uid, "granted")) == number, 20, "the answer")
    return master.of(order.uid, "granted")[-1].granted


KEYS = itertools.count(100)


def run(master: FakeMaster, host: AgentHost, command: str, start: dict[str, Any] | None = None, **text: object) -> pb.Order:
    """A job of its own that this host is ordered to start."""
    made = host.text(master, command, **text)
    order = start_order(master, made, key=next(KEYS), **(start or {}))
    master.order(order, texts=(made,))
    return order
