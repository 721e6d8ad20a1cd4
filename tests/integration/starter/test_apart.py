"""Two users' jobs on one host, and jobs and daemons: what they cannot reach of each other. A starter of root, real users."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from agent.starter.system import cgroup
from tests.support.daemons.starters import Rig
from tests.support.processes import is_alive, parent_of
from tests.support.wait import wait_until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become other users"),
    pytest.mark.skipif(not os.access("/usr/bin/python3", os.X_OK), reason="needs a Python that every user reaches"),
]
A = {"name": "a", "uid": 61001, "gid": 61001, "groups": [61001]}
B = {"name": "b", "uid": 61002, "gid": 61002, "groups": [61002]}
PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
KEYS = """
import ctypes, os, sys, time
call = ctypes.CDLL(None, use_errno=True).syscall
add_key, keyctl = {"x86_64": (248, 250)}.get(os.uname().machine, (217, 219))
def read(serial):
    room = ctypes.create_string_buffer(99)
    size = call(keyctl, 11, serial, room, 99, 0)
    return room.raw[:size].decode() if size >= 0 else os.strerror(ctypes.get_errno())
def found():
    serial = call(keyctl, 10, -3, b"user", b"lava-test", 0)
    return read(serial) if serial > 0 else "none"
"""
KEEP = KEYS + 'print(found(), call(add_key, b"user", b"lava-test", b"token", 5, -3), flush=True)\n'


@pytest.fixture
def open_rig(rig: Rig) -> Rig:
    """A rig in a folder that everybody reaches, with one below it that everybody may write to."""
    rig.folder.chmod(0o755)
    (rig.folder / "out").mkdir()
    (rig.folder / "out").chmod(0o777)
    rig.outputs = rig.folder / "out"
    return rig


KEYED = """
import ctypes, os, sys

libc = ctypes.CDLL(None)
join, add = {"x86_64": (250, 248)}.get(os.uname().machine, (219, 217))
libc.syscall(join, 1, 0, 0, 0, 0)
libc.syscall(add, b"user", b"lava-test", b"root's", 6, -3)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes a program whose session keyring is its own, and has a key of root's."""


def test_jobs_share_no_session_keyring_with_each_other_nor_with_the_daemon(open_rig: Rig) -> None:
    rig = open_rig
    rig.stop()
    rig.under = [*PYTHON, KEYED]
    rig.start()
    rig.order(rig.part("a", [*PYTHON, f"{KEEP}time.sleep(100)"], user=A))
    wait_until(lambda: rig.text("a").endswith("\n"), 20, "the key of user a")
    came, serial = rig.text("a").split()
    assert came == "none"
    assert int(serial) > 0
    rig.run("b", [*PYTHON, f"{KEYS}print(found(), '|', read({serial}))"], user=B)
    rig.send({"do": "kill", "uids": ["a"]})
    rig.gone("a")
    rig.run("again", [*PYTHON, KEYS + "print(found())"], user=A)
    assert rig.text("b") == "none | Permission denied\n"
    assert rig.text("again") == "none\n"


def test_a_job_reads_nothing_of_another_users_processes_and_stops_none(open_rig: Rig) -> None:
    rig = open_rig
    rig.order(rig.part("a", "exec sleep 100", user=A, env={"SECRET": "word"}, stdout=None))
    task = rig.pid_of("a")
    shepherd = parent_of(task)
    look = """
import ctypes, sys
for pid in map(int, sys.argv[1:]):
    for name in ("environ", "mem", "fd/1", "maps"):
        try:
            print(pid, name, open(f"/proc/{pid}/{name}", "rb").read(1))
        except PermissionError:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    for what, failed in (("ptrace", libc.ptrace(16, pid, 0, 0)), ("kill", libc.kill(pid, 9))):
        if not failed or ctypes.get_errno() != 1:
            print(pid, what)
print("looked")
"""
    rig.run("b", [*PYTHON, look, str(task), str(shepherd), str(rig.pid)], user=B)
    assert rig.text("b") == "looked\n"
    assert is_alive(task)
    # nor of its own shepherd, whose sockets and memory are the starter's business
    rig.order(rig.part("self", [*PYTHON, look.replace("libc.kill(pid, 9)", "-1"), str(shepherd)], user=A))
    rig.gone("self")
    assert rig.text("self") == "looked\n"


def test_a_job_opens_nothing_of_the_spool_and_talks_to_nobodys_sockets(open_rig: Rig) -> None:
    rig = open_rig
    rig.order(rig.part("a", "echo secret; exec sleep 100", user=A, umask=0o077, serve={"place": 0, "hosts": ["hostA"]}))
    task = rig.pid_of("a")
    names = [line.split()[-1][1:] for line in Path("/proc/net/unix").read_text().splitlines() if " @" in line]
    environment = Path(f"/proc/{task}/environ").read_bytes().decode()
    mine = [name for name in names if name in environment]
    assert mine, environment
    look = """
import os, socket, sys
def tried(what, step):
    try:
        print(what, step())
    except OSError as e:
        print(what, e.strerror)
def talk(address):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(30)
        sock.connect(address)
        sock.sendall(b"\\0\\0\\0\\x02{}")
        return sock.recv(100)
spool, agent, output, door = sys.argv[1:]
tried("spool", lambda: os.listdir(spool))
tried("starter", lambda: talk(agent))
tried("output", lambda: open(output).read())
tried("door", lambda: talk("\\0" + door))
"""
    argv = [*PYTHON, look, str(rig.folder / "spool-hostA"), rig.socket_path, rig.out("a"), mine[0]]
    rig.run("b", argv, user=B)
    said = dict(line.split(" ", 1) for line in rig.text("b").splitlines())
    assert {said[what] for what in ("spool", "starter", "output")} == {"Permission denied"}
    assert said["door"] in ("b''", "Connection reset by peer", "Broken pipe")


def test_jobs_have_none_of_the_daemons_protection_from_the_oom_killer(open_rig: Rig) -> None:
    rig = open_rig
    rig.run("plain", "cat /proc/self/oom_score_adj", user=A)
    assert int(rig.text("plain")) >= 0
    rig.stop()
    rig.start(None, "--oom-score-adj", "700")
    rig.run("a", "cat /proc/self/oom_score_adj", user=A)
    assert rig.text("a") == "700\n"
    rig.stop()
    own = Path("/proc/self/oom_score_adj")
    before = own.read_text()
    try:
        own.write_text("-500")
    except PermissionError:
        pytest.skip("this root has no CAP_SYS_RESOURCE, and cannot protect a daemon")
    try:
        rig.start()
    finally:
        own.write_text(before)
    rig.run("protected", "cat /proc/self/oom_score_adj; echo -100 > /proc/self/oom_score_adj || echo refused", user=A)
    assert rig.text("protected").split() == ["0", "refused"]


def test_jobs_have_the_limits_of_open_files_that_the_starter_was_started_with(open_rig: Rig) -> None:
    rig = open_rig
    rig.stop()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (700, hard))
        rig.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    rig.run("a", "ulimit -Sn; ulimit -Hn", user=A, pre_exec=f"ulimit -Sn > {rig.outputs}/pre")
    assert rig.text("a") == f"700\n{hard}\n"
    assert (rig.outputs / "pre").read_text() == "700\n"
    assert resource.prlimit(rig.pid, resource.RLIMIT_NOFILE) == (hard, hard)
    rig.run("b", "ulimit -Sn", user=A, rlimits={"NOFILE": [300, -1]})
    assert rig.text("b") == "300\n"


def test_a_fork_bomb_is_stopped_by_its_jobs_limit_of_processes(open_rig: Rig) -> None:
    rig = open_rig
    if not rig.keeps("processes"):
        pytest.skip("no cgroup can limit processes here")
    bomb = "exec perl -e 'while (1) { fork; select(undef, undef, undef, 0.01) }'"
    rig.order(rig.part("bomb", bomb, user=A, stdout=None, cgroup={"pids": 40}), rig.part("other", "sleep 100", user=A))
    other = rig.pid_of("other")
    group = group_of(rig.pid_of("bomb"))
    wait_until(lambda: int((group / "pids.current").read_text()) == 41, 20, "as many processes as may be")
    count = (group / "pids.events").read_text().split()
    wait_until(lambda: (group / "pids.events").read_text().split() != count, 20, "another fork that is refused")
    assert int((group / "pids.current").read_text()) <= 41
    assert rig.run("beside", "for i in 1 2 3; do /bin/echo $i; done", user=A)["status"] == 0
    rig.send({"do": "kill", "uids": ["bomb"]})
    rig.gone("bomb", 30)
    assert is_alive(other)
    assert (group / "pids.current").read_text() == "1\n"
    # the next part of the shepherd has its own limit
    rig.run("next", "cat /proc/self/cgroup", user=A, cgroup={"pids": 50})
    assert (group / "pids.max").read_text() == "51\n"
    rig.send({"do": "kill", "uids": ["other"]})
    rig.gone("other")
    assert rig.stop() == 0
    assert not group.exists()


def test_the_group_of_a_killed_shepherd_goes_when_nothing_is_left_in_it(open_rig: Rig) -> None:
    rig = open_rig
    if not rig.keeps("processes"):
        pytest.skip("no cgroup can limit processes here")
    rig.order(rig.part("a", "sleep 100 & sleep 100", user=A, cgroup={"pids": 40, "memory_bytes": 64 << 20}))
    group = group_of(rig.pid_of("a"))
    os.kill(int(Path(f"/proc/{rig.pid_of('a')}/stat").read_text().split()[3]), signal.SIGKILL)
    rig.report("a", "lost")
    # the kernel may find it busy for a moment
    wait_until(lambda: not group.exists(), 20, f"{group} to be removed")


def test_what_a_killed_shepherd_leaves_forks_no_more(open_rig: Rig) -> None:
    """A process that nobody ends, as it is not the starter's, shows the limit for longer than what is ended."""
    rig = open_rig
    if not rig.keeps("processes"):
        pytest.skip("no cgroup can limit processes here")
    rig.order(rig.part("a", "sleep 100 & sleep 100", user=A, cgroup={"pids": 40}))
    group = group_of(rig.pid_of("a"))
    loop = "while read line; do /bin/true && echo made; done; exit 7"
    with subprocess.Popen(
        ["/bin/sh", "-c", loop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        (group / "cgroup.procs").write_text(str(other.pid))
        other.stdin.write(b"once\n")
        other.stdin.flush()
        assert other.stdout.readline() == b"made\n"
        os.kill(int(Path(f"/proc/{rig.pid_of('a')}/stat").read_text().split()[3]), signal.SIGKILL)
        rig.report("a", "lost")
        assert (group / "pids.max").read_text() == "0\n"
        assert other.communicate(b"again\n", 20)[0] == b""
    wait_until(lambda: not group.exists(), 20, f"{group} to be removed")


def group_of(pid: int) -> Path:
    """The folder of a process's cgroup for pids."""
    unified = ""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if names == "pids":
            return Path("/sys/fs/cgroup/pids" + path)
        if not names:
            unified = path
    return Path(cgroup.mounts("cgroup2")[0][0] + unified)
