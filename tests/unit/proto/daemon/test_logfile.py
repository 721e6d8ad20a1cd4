"""The log of a daemon and its child processes is found again under its name after it was moved away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.wait import wait_until

ROOT = Path(__file__).parents[3]
# a signal that comes just before a read that blocks is handled after it: so they look for it between
WAIT = "while not select.select([sys.stdin], [], [], 0.05)[0]: pass"
CHILD = f"""
import select, sys
from proto.daemon import logfile
logfile.follow_parent()
print("child", flush=True)
{WAIT}
print("child", flush=True)
"""
DAEMON = f"""
import select, subprocess, sys
from proto.daemon import logfile
logfile.follow(sys.argv[1], inherited=True)
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE, text=True)
print("daemon", child.pid, flush=True)
{WAIT}
print("daemon again", flush=True)
child.communicate("\\n")
"""


def test_a_moved_log_is_begun_anew_by_all_processes(tmp_path: Path) -> None:
    path, moved = tmp_path / "lavad.log", tmp_path / "lavad.log.1"
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, str(path)], stdin=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        wait_until(lambda: path.exists() and {"daemon", "child"} <= set(path.read_text().split()), 30)
        child = next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith("daemon"))
        path.rename(moved)
        for pid in (daemon.pid, child):
            os.kill(pid, signal.SIGHUP)
        wait_until(path.exists, 30)
        wait_until(lambda: all(os.readlink(f"/proc/{pid}/fd/1") == str(path) for pid in (daemon.pid, child)), 30)
        daemon.communicate("\n", timeout=30)
    finally:
        daemon.kill()
    assert path.read_text().splitlines() == ["daemon again", "child"]
    assert "again" not in moved.read_text()


def test_a_log_on_a_file_system_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    """A FIFO that nobody reads: who opens it waits. Once it can be opened, what was asked for meanwhile is done."""
    path, moved = tmp_path / "lavad.log", tmp_path / "lavad.log.1"
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, str(path)], stdin=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        wait_until(lambda: path.exists() and {"daemon", "child"} <= set(path.read_text().split()), 30)
        path.rename(moved)
        os.mkfifo(path)
        for _ in range(3):
            os.kill(daemon.pid, signal.SIGHUP)
        assert daemon.stdin is not None
        daemon.stdin.write("\n")
        daemon.stdin.flush()
        wait_until(lambda: "daemon again" in moved.read_text(), 30, "the daemon goes on")
    finally:
        daemon.kill()
        daemon.communicate()


MANY = """
import os, signal, sys
from pathlib import Path
from proto.daemon import logfile
from tests.support.wait import wait_until
path = Path(sys.argv[1])
logfile.follow(str(path))
path.unlink()
os.mkfifo(path)
os.kill(os.getpid(), signal.SIGHUP)
wait_until(lambda: not signal.getsignal(signal.SIGHUP).__self__._asked, 30)  # it is being opened
for _ in range(8):
    os.kill(os.getpid(), signal.SIGHUP)
threads = len(os.listdir("/proc/self/task"))
waited_for = path.rename(path.with_name("fifo"))
os.open(waited_for, os.O_RDONLY | os.O_NONBLOCK)  # who waits for it goes on
wait_until(lambda: os.readlink("/proc/self/fd/1") == str(path), 30)
print(threads, flush=True)
"""


def test_signals_that_come_while_the_log_hangs_are_one(tmp_path: Path) -> None:
    """There is one thread more, and what they asked for is done."""
    path = tmp_path / "log"
    subprocess.run([sys.executable, "-c", MANY, str(path)], stdin=subprocess.DEVNULL, cwd=ROOT, check=True, timeout=60)
    assert path.read_text() == "2\n"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lavad.log").symlink_to(tmp_path / "elsewhere")
    daemon = subprocess.run(
        [sys.executable, "-c", DAEMON, str(tmp_path / "lavad.log")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert daemon.returncode != 0
    assert not (tmp_path / "elsewhere").exists()
