"""Shepherds are the same whoever forks them, and there are shepherds whatever becomes of who forks them."""

from __future__ import annotations

import functools
import operator
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.starter.part import native_parts
from agent.starter.system import cgroup
from tests.support.daemons.starters import ENTRY, NOBODY, Rig, children
from tests.support.processes import is_alive, state_of
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
SIGNALS = re.compile(r"^Sig(?:Blk|Ign|Cgt):.*$", re.M)
OF_GLIBC = 0b11 << 31
"""Signals 32 and 33, which its posix_spawn leaves ignored: so has make for all that it runs."""
SAME = re.compile(r"^(?:Name|Umask|PPid|Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|NoNewPrivs):.*$", re.M)

NO_NATIVE_CODE = not os.path.exists(native_parts.LIBRARY) or os.environ.get("LAVA_NATIVE", "").startswith("N")


@pytest.fixture
def native() -> None:
    if NO_NATIVE_CODE:
        pytest.skip("no native code: the starter forks every shepherd")


@pytest.fixture
def rig(tmp_path: Path, native: None) -> Iterator[Rig]:
    one = Rig(tmp_path).start()
    yield one
    if one.process is not None and one.process.poll() is None:
        assert one.stop() == 0


def facts(pid: int) -> tuple[object, ...]:
    """What a shepherd is, but for its files, and what does not end it; of its cgroups without the numbers in their names.

    Nor is the saved one of its groups compared: one without Python has it for the moment in which it becomes Python.
    """
    folder = Path(f"/proc/{pid}")
    text = re.sub(r"^(Gid:\t\d+\t\d+)\t\d+", r"\1", (folder / "status").read_text(), flags=re.M)
    status = SAME.findall(text), re.sub(r"-\d+$", "", (folder / "cgroup").read_text(), flags=re.M)
    # one with Python has handlers or ignores them, another has them blocked
    signals = functools.reduce(operator.or_, (int(line.split()[1], 16) for line in SIGNALS.findall(text)))
    return status, signals & ~OF_GLIBC, os.getsid(pid) == pid, os.readlink(folder / "cwd"), (folder / "oom_score_adj").read_text()


def test_a_shepherd_is_the_same_whoever_forks_it(rig: Rig) -> None:
    """But for its files: socket, end file and what tells of ended children; Python has more. Its tasks block no signal."""
    forkers = rig.forkers()
    assert len(forkers) == 2
    os.chmod(rig.folder, 0o755)
    user = NOBODY if os.getuid() == 0 else None
    more = {"user": user, "stdout": {"path": "/dev/null"}, "cwd": "/"} if user else {}
    rig.order(rig.part("a", ["sleep", "100"], **more), rig.part("b", ["sleep", "100"], **more, pre_exec="true"))
    tasks = [SIGNALS.findall(Path(f"/proc/{rig.pid_of(uid)}/status").read_text()) for uid in "ab"]
    assert tasks[0] == tasks[1]
    assert {int(line.split()[1], 16) & ~OF_GLIBC for line in tasks[0]} == {0}
    forked = sorted(rig.shepherds(), key=_has_python)
    assert [_has_python(pid) for pid in forked] == [False, True]
    files = sorted(os.listdir(f"/proc/{forked[0]}/fd"), key=int)
    assert files == [str(fd) for fd in range(6)]
    assert os.readlink(f"/proc/{forked[0]}/fd/4").endswith(".end")
    for forker in forkers:
        os.kill(forker, signal.SIGKILL)
    wait_until(lambda: "the starter forks them" in rig.log(), 20, "the starter to note it")
    wait_until(lambda: not rig.forkers(), 20, "both to be gone")
    rig.order(rig.part("c", ["sleep", "100"], **more))
    rig.pid_of("c")
    (other,) = set(rig.shepherds()) - set(forked)
    assert facts(forked[0]) == facts(forked[1]) == facts(other)
    rig.send({"do": "kill", "uids": ["a", "b", "c"]})
    for uid in ("a", "b", "c"):
        assert rig.end(uid)["status"] == signal.SIGKILL
        rig.gone(uid)
    assert rig.run("d", "exit 3")["status"] == 3 << 8


ONLY_PYTHON = {"do": "signal", "uids": ["a"], "sig": signal.SIGUSR1, "scope": "catching", "within": 10.0}
"""An order that native code does not obey."""


def _has_python(pid: int) -> bool:
    try:
        return "python" in os.readlink(f"/proc/{pid}/exe")
    except PermissionError:
        pytest.skip("needs root: it has forbidden to look at what it runs")


def test_one_without_python_becomes_python_where_it_is_needed(rig: Rig) -> None:
    """It is the same process then, with the same facts, and goes on with the part as it is."""
    os.chmod(rig.folder, 0o755)
    user = NOBODY if os.getuid() == 0 else None
    more = {"user": user, "stdout": {"path": "/dev/null"}, "cwd": "/"} if user else {}
    deadline = time.clock_gettime(time.CLOCK_BOOTTIME) + 1000
    program = "trap 'exit 5' USR1; (trap '' TERM; exec sleep 1000) & sleep 1000 & wait"
    rig.order(rig.part("a", program, grace=0.1, deadline=deadline, **more))
    task = rig.pid_of("a")
    (pid,) = rig.shepherds()
    before = facts(pid)
    assert not _has_python(pid)
    wait_until(lambda: len(children(task)) == 2, 20, "what the task starts")
    left = children(task)
    rig.send(ONLY_PYTHON)
    assert rig.end("a")["status"] == 5 << 8
    rig.gone("a")
    assert not any(map(is_alive, left))
    assert _has_python(pid)
    assert facts(pid) == before
    assert rig.shepherds() == [pid]
    assert [rig.run(uid, "exit 3", **more)["status"] for uid in ("b", "c")] == [3 << 8] * 2
    assert rig.shepherds() == [pid]


THIEF = """
import ctypes, os, signal, sys, time
shepherd, call = os.getppid(), ctypes.CDLL(None).syscall
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
found = open(sys.argv[1], "w")
pidfd = os.pidfd_open(shepherd)
print("begins", file=found, flush=True)
while True:
    for fd in range(2, 8):
        if call(438, pidfd, fd, 0) >= 0:  # pidfd_getfd
            print(fd, os.readlink(f"/proc/{shepherd}/exe"), file=found, flush=True)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only shepherds of a starter that is root's are to be kept from their users")
def test_a_job_gets_no_file_of_its_shepherd_while_that_becomes_python(rig: Rig) -> None:
    """They are the log and the end file, both root's, and the starter's socket."""
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    if scope.exists() and scope.read_text().strip() != "0":
        pytest.skip("this kernel lets no process trace its parent")
    os.chmod(rig.folder, 0o755)
    folder = rig.folder / "of_nobody"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    words = ["/usr/bin/python3", "-c", THIEF, str(folder / "found")]
    rig.order(rig.part("a", words, user=NOBODY, stdout={"path": "/dev/null"}, cwd="/", grace=1.0))
    assert rig.end("a")["status"] == 0
    rig.send(ONLY_PYTHON)
    rig.gone("a")
    assert _has_python(rig.shepherds()[0])
    assert (folder / "found").read_text().splitlines() == ["begins"]


@pytest.fixture
def with_large_stacks(tmp_path: Path, native: None) -> Iterator[Rig]:
    """A starter with a soft limit of stacks that the kernel lowers where it does not trust who starts a program."""
    before = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (32 << 20, before[1]))
    try:
        one = Rig(tmp_path).start()
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, before)
    yield one
    assert one.stop() == 0


def test_what_becomes_python_keeps_the_limits_of_its_tasks(with_large_stacks: Rig) -> None:
    rig = with_large_stacks
    rig.order(rig.part("a", "(trap '' TERM; exec sleep 1000) & exit 0", grace=1.0))
    rig.end("a")
    rig.send(ONLY_PYTHON)
    rig.gone("a")
    (pid,) = rig.shepherds()
    assert _has_python(pid)
    limits = [Path(f"/proc/{one}/limits").read_text().split("Max open files")[0] for one in (pid, rig.pid)]
    assert limits[0] == limits[1]


def test_an_idle_shepherd_is_not_woken_when_the_starter_reads_what_it_said(rig: Rig) -> None:
    """Once for each part of all: it cost a tenth of what starter and shepherds take for a short one."""
    fifo = rig.folder / "fifo"
    os.mkfifo(fifo)
    rig.order(rig.part("a", f"read line < {fifo}"))
    task = rig.pid_of("a")
    (pid,) = rig.shepherds()

    def waits() -> bool:
        return state_of(pid) == "S"

    def waited() -> int:
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)
        assert found is not None
        return int(found[1])

    os.kill(rig.pid, signal.SIGSTOP)
    fifo.write_text("go on\n")
    wait_until(lambda: not os.path.exists(f"/proc/{task}") and waits(), 20, "the shepherd to have said all")
    before = waited()
    os.kill(rig.pid, signal.SIGCONT)
    rig.gone("a")
    wait_until(waits, 20, "the shepherd to wait again")
    assert waited() == before
    assert not _has_python(pid)


@pytest.fixture
def release() -> Iterator[Path]:
    """A folder of lava's that every user may read, with Python in it."""
    with tempfile.TemporaryDirectory(prefix="lava-release-") as made:
        os.chmod(made, 0o755)
        shutil.copytree(ENTRY.parent, f"{made}/one/agent/starter")
        os.symlink(os.path.realpath(sys.executable), f"{made}/one/python")
        os.symlink("one", f"{made}/lava")
        yield Path(made)


@pytest.fixture
def linked(tmp_path: Path, release: Path, native: None) -> Iterator[Rig]:
    """To be started by the link to this release, with few open files for jobs and a variable of its own."""
    one, lava = Rig(tmp_path), release / "lava"
    words = f'ulimit -Sn 777; shift 4; SECRET=1 exec {lava}/python -I -S {lava}/agent/starter/__main__.py "$@"'
    one.under = ["/bin/sh", "-c", words, "sh"]
    yield one
    if one.process is not None and one.process.poll() is None:
        assert one.stop() == 0


def test_it_becomes_python_of_its_release_as_soon_as_that_can_be_started(linked: Rig, release: Path) -> None:
    """Although the link to the release leads to another, with the starter's limits for jobs, and without its variables."""
    one = linked.start()
    one.order(one.part("a", "trap 'exit 5' USR1; sleep 1000 & echo here; wait"))
    wait_until(lambda: one.text("a"), 20, "the task's handler")
    (pid,) = one.shepherds()
    os.remove(release / "lava")
    os.symlink("two", release / "lava")
    os.rename(release / "one/python", release / "away")
    one.send(ONLY_PYTHON)
    wait_until(lambda: f"cannot start {release}/one/python: No such file" in one.log(), 20, "it to say so")
    os.rename(release / "away", release / "one/python")
    assert one.end("a")["status"] == 5 << 8
    one.gone("a")
    assert one.run("b", "ulimit -Sn")["status"] == 0
    assert (one.text("b"), one.shepherds(), _has_python(pid)) == ("777\n", [pid], True)
    assert b"SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.parametrize("count", [2, 200], ids=["few", "more than are killed at once"])
def test_where_python_is_lost_its_part_ends_with_the_starter(linked: Rig, release: Path, count: int) -> None:
    one = linked.start()
    one.order(one.part("a", f"for i in $(seq {count}); do sleep 1000 & done; wait"))
    task = one.pid_of("a")
    (pid,) = one.shepherds()
    wait_until(lambda: len(children(task)) == count, 20, "what the task starts")
    os.rename(release / "one/python", release / "away")
    pids = [pid, task, *children(task)]
    one.send(ONLY_PYTHON)
    wait_until(lambda: "cannot start" in one.log(), 20, "it to say so")
    one.kill()
    wait_until(lambda: not any(map(is_alive, pids)), 20, "their end")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: its processes are without limit")
def test_one_without_python_becomes_python_although_its_user_has_too_many_processes(rig: Rig) -> None:
    """Python says then why the task cannot be started."""
    os.chmod(rig.folder, 0o755)
    _, most = resource.prlimit(rig.forkers()[0], resource.RLIMIT_NPROC)
    resource.prlimit(rig.forkers()[0], resource.RLIMIT_NPROC, (0, most))
    assert rig.run("a", "true", user=NOBODY, stdout={"path": "/dev/null"}, cwd="/")["status"] == 126 << 8
    (pid,) = rig.shepherds()
    assert _has_python(pid)
    assert re.search(r"^Max processes +0 ", Path(f"/proc/{pid}/limits").read_text(), re.M)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: else all shepherds are of the starter's user")
def test_none_is_without_python_where_the_release_is_behind_a_closed_folder(linked: Rig, release: Path) -> None:
    os.mkdir(release / "closed", 0o700)
    os.rename(release / "one", release / "closed/one")
    os.remove(release / "lava")
    os.symlink("closed/one", release / "lava")
    assert len(linked.start().forkers()) == 1


def test_one_without_python_ends_its_part_with_the_starter(rig: Rig) -> None:
    rig.order(rig.part("a", "sleep 1000 & (trap '' TERM; sleep 1000; :) & wait"))
    task = rig.pid_of("a")
    (pid,) = rig.shepherds()
    wait_until(lambda: len(children(task)) == 2, 20, "what the task starts")
    pids = [pid, task, *children(task)]
    rig.kill()
    wait_until(lambda: not any(map(is_alive, pids)), 20, "its end")
    assert "failed" not in rig.log()
    rig.start()
    assert rig.known()["a"]["state"] == "lost"


FORK = """
import os, socket, sys
sys.path.insert(0, sys.argv[1])
from agent.starter.part import native_parts
from agent.starter.supervisor import forker
from agent.starter.supervisor.shepherd_handle import ShepherdKey
assert not native_parts.load()
other, one = forker.begin("here", 0)
ours, theirs = socket.socketpair()
key = ShepherdKey(os.getuid(), os.getgid(), (), False)
pid = one.fork([forker.ToFork(key, theirs.fileno(), os.open("/dev/null", os.O_WRONLY), sys.argv[2])])[0].pid
print(open(f"/proc/{pid}/cgroup").read())
theirs.close(), ours.close(), os.waitpid(pid, 0)
one.close(wait=True), other.close(wait=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make cgroups")
def test_a_shepherd_is_forked_into_a_group_of_version_2() -> None:
    point = next((point for point, _ in cgroup.mounts("cgroup2")), "")
    if not point or NO_NATIVE_CODE:
        pytest.skip("no cgroups of version 2 are mounted here, or there is no native code")
    group = Path(f"{point}/lava-test-{os.getpid()}")
    group.mkdir()
    try:
        words = [sys.executable, "-ISc", FORK, str(ENTRY.parents[2]), str(group)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    finally:
        group.rmdir()
    assert f"0::/{group.name}\n" in done.stdout


def test_one_that_does_not_answer_is_ended_and_its_parts_run(rig: Rig) -> None:
    forker = rig.forkers()[0]
    os.kill(forker, signal.SIGSTOP)
    assert rig.run("a", "echo here")["status"] == 0
    assert rig.text("a") == "here\n"
    wait_until(lambda: not is_alive(forker), 20, "its end")


MANY = """
import os, socket
from agent.starter.part import native_parts
from agent.starter.supervisor.forker import ToFork, begin
from agent.starter.supervisor.shepherd_handle import ShepherdKey

assert not native_parts.load()
forkers = begin("hostA", 0)
ours, theirs = socket.socketpair()
key = ShepherdKey(os.getuid(), os.getgid(), (), False)
with open("/dev/null", "r+") as end_file:
    made = forkers[-1].fork([ToFork(key, theirs.fileno(), end_file.fileno(), "")] * 600)
ours.close()
theirs.close()
[forker.close(wait=True) for forker in forkers]
print(len({os.waitpid(one.pid, 0)[0] for one in made}))
"""


def test_very_many_are_forked_at_once(rig: Rig) -> None:
    """More than the sockets between the two have room for."""
    done = subprocess.run([sys.executable, "-c", MANY], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("600\n", "")


def test_it_ends_with_a_starter_that_is_killed(rig: Rig) -> None:
    forkers = rig.forkers()
    rig.kill()
    wait_until(lambda: not any(map(is_alive, forkers)), 20, "their end")
