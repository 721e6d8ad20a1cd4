"""What must hold when somebody dies, stops, escapes or talks nonsense. Real processes, killed and frozen."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent.starter.system import proctree
from agent.starter.wire.frames import pack
from tests.support.daemons.starters import ENTRY, Rig, boottime, children
from tests.support.processes import is_alive, parent_of
from tests.support.wait import wait_until

# Double fork, setsid, a cleared environment, closed files, ignored signals: what a daemon does, and more.
ESCAPE = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for s in (1, 2, 3, 15):
            signal.signal(s, signal.SIG_IGN)
        with open(sys.argv[1] + ".new", "w") as f:
            f.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        os.closerange(0, 1000)
        os.execve("/bin/sh", ["sh", "-c", "trap '' 1 2 3 15; while :; do sleep 1; done"], {})
    os._exit(0)
"""


def escaped(rig: Rig, uid: str, then: str) -> int:
    """Start a part that leaves a daemon behind and goes on with ``then``: the daemon's pid."""
    (rig.folder / "escape.py").write_text(ESCAPE)
    mark = rig.folder / f"{uid}.pid"
    rig.order(rig.part(uid, f"{sys.executable} -I -S escape.py {mark}; {then}"))
    wait_until(mark.exists, 20, "the daemon")
    return int(mark.read_text())


def test_an_escaped_daemon_is_killed_with_its_part(rig: Rig) -> None:
    """A double-forked process with a new session is still found and killed."""
    pid = escaped(rig, "esc", "sleep 100")
    rig.send({"do": "kill", "uids": ["esc"]})
    rig.gone("esc")
    assert not is_alive(pid)


def test_what_is_left_after_the_end_gets_its_grace_and_dies(rig: Rig) -> None:
    (rig.folder / "escape.py").write_text(ESCAPE)
    mark = rig.folder / "left.pid"
    wait = f"while ! test -e {mark}; do sleep 0.02; done"
    rig.order(rig.part("left", f"{sys.executable} -I -S escape.py {mark}; {wait}", grace=0.3))
    assert rig.end("left")["status"] == 0
    rig.gone("left")
    assert not is_alive(int(mark.read_text()))


def test_a_killed_shepherd_costs_its_own_part_only(rig: Rig) -> None:
    pid = escaped(rig, "esc", "sleep 100")
    rig.order(rig.part("other", "sleep 100"))
    task, other = rig.pid_of("esc"), rig.pid_of("other")
    shepherd = next(s for s in rig.shepherds() if task in children(s))
    os.kill(shepherd, signal.SIGKILL)
    assert "signal 9" in rig.report("esc", "lost")["reason"]
    assert not is_alive(pid)
    assert not is_alive(task)
    assert is_alive(other)
    status = rig.known()
    assert (status["esc"]["state"], status["other"]["state"]) == ("lost", "running")
    rig.send({"do": "forget", "uids": ["esc"]})
    assert set(rig.known()) == {"other"}


TRACER = """
import ctypes, signal, sys
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), 0, 0), flush=True)  # PTRACE_SEIZE
signal.pause()
"""


def test_a_process_that_a_tracer_keeps_as_a_zombie_holds_up_no_end(rig: Rig) -> None:
    traced = escaped(rig, "esc", "sleep 100")
    rig.order(rig.part("other", "sleep 100"))
    tasks = {uid: rig.pid_of(uid) for uid in ("esc", "other")}
    shepherds = {uid: next(s for s in rig.shepherds() if task in children(s)) for uid, task in tasks.items()}
    with subprocess.Popen([sys.executable, "-c", TRACER, str(traced)], stdout=subprocess.PIPE, text=True) as tracer:
        assert tracer.stdout is not None
        assert tracer.stdout.readline() == "0\n"
        for uid, shepherd in shepherds.items():
            os.kill(shepherd, signal.SIGKILL)
            rig.report(uid, "lost")
        assert proctree.stat_fields(traced)[0] == b"Z"
        tracer.kill()


def test_nothing_runs_on_when_the_starter_is_killed_and_the_next_one_knows(rig: Rig) -> None:
    rig.run("done", "exit 5")
    rig.run("forgotten", "exit 6")
    rig.send({"do": "forget", "uids": ["forgotten"]})
    pid = escaped(rig, "esc", "sleep 100")
    task = rig.pid_of("esc")
    shepherds = rig.shepherds()
    rig.known()
    rig.kill()
    wait_until(lambda: not any(map(is_alive, [pid, task, *shepherds])), 30, "all to be gone")
    rig.start()
    parts = {p["uid"]: p for p in rig.hello["parts"]}
    assert set(parts) == {"done", "esc"}
    assert parts["done"]["state"] == "gone"
    assert parts["done"]["end"]["status"] == 5 << 8
    assert parts["esc"]["state"] == "lost"
    assert rig.hello["seq"] == rig.seq
    rig.send({"do": "forget", "uids": ["done", "esc"]})
    assert rig.known() == {}
    assert rig.run("again", "exit 2")["status"] == 2 << 8
    rig.kill()
    rig.start()
    assert {p["uid"] for p in rig.hello["parts"]} == {"again"}


def test_starter_and_shepherds_killed_at_once_leave_nothing_to_the_next_starter(rig: Rig) -> None:
    rig.order(rig.part("a", "sleep 100 & sleep 101"))
    rig.pid_of("a")
    shepherd = rig.shepherds()[0]
    os.kill(rig.pid, signal.SIGSTOP)  # it would have the shepherd go on
    os.kill(shepherd, signal.SIGSTOP)
    tasks = children(shepherd)
    rig.kill()
    assert all(map(is_alive, tasks))
    rig.start()
    assert not any(map(is_alive, [shepherd, *tasks]))
    assert rig.hello["parts"][0]["state"] == "lost"


def test_a_daemon_does_not_escape_when_starter_and_shepherd_are_killed(rig: Rig) -> None:
    """With a session of its own and an empty environment, nothing but the group that it is in tells whose it is."""
    group = rig.folder / f"spool-{rig.host}" / "group"
    if not group.exists() or not group.read_text():
        pytest.skip("no control group can be made here")
    pid = escaped(rig, "esc", "sleep 100")
    shepherds = rig.shepherds()
    os.kill(rig.pid, signal.SIGSTOP)
    for shepherd in shepherds:
        os.kill(shepherd, signal.SIGKILL)
    rig.kill()
    assert is_alive(pid)
    rig.start()
    wait_until(lambda: not is_alive(pid), 30, "the daemon to be gone")
    assert rig.known()["esc"]["state"] == "lost"
    paths = [Path(line) for line in group.read_text().splitlines()]
    assert all(path.exists() for path in paths)
    assert rig.stop() == 0
    assert not any(path.exists() for path in paths)


MPI_LIKE = """
import mmap, os, sys, time
fd = os.open("/dev/shm/" + sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.ftruncate(fd, 1 << 20)
held = mmap.mmap(fd, 1 << 20)
os.close(fd)
print("ready", flush=True)
time.sleep(float(sys.argv[2]))
sys.exit(1)
"""


def test_shared_memory_of_a_killed_job_goes_and_that_of_others_stays(rig: Rig) -> None:
    tag = f"{os.getpid()}_{rig.pid}"
    names = {what: f"mpich_shm_lavatest{what}_{tag}" for what in ("old", "killed", "living", "failed")}
    files = {what: Path("/dev/shm") / name for what, name in names.items()}
    files["old"].touch()
    os.utime(files["old"], (1, 1))  # older than any part on this machine
    try:
        for uid, seconds in (("killed", "100"), ("living", "100"), ("failed", "0.1")):
            rig.order(rig.part(uid, [sys.executable, "-I", "-S", "-c", MPI_LIKE, names[uid], seconds]))
            wait_until(lambda: rig.text(uid) == "ready\n", 30, "the file")  # noqa: B023
        rig.gone("failed")
        rig.send({"do": "kill", "uids": ["killed"]})
        rig.gone("killed")
        assert {what for what, path in files.items() if path.exists()} == {"old", "living"}
    finally:
        for path in files.values():
            path.unlink(missing_ok=True)


def test_an_end_on_disk_survives_a_shepherd_that_could_not_tell_it(rig: Rig) -> None:
    go = rig.folder / "go"
    rig.order(rig.part("mute", f"while ! test -e {go}; do sleep 0.02; done; exit 3"))
    shepherd = parent_of(rig.pid_of("mute"))
    os.kill(rig.pid, signal.SIGSTOP)
    go.touch()
    ends = rig.folder / "spool-hostA" / "ends"
    wait_until(lambda: any(b"mute" in p.read_bytes() for p in ends.iterdir()), 30, "the end on disk")
    os.kill(shepherd, signal.SIGKILL)
    os.kill(rig.pid, signal.SIGCONT)
    assert rig.end("mute")["status"] == 3 << 8


def test_one_shepherd_that_cannot_be_forked_fails_its_own_part_alone(rig: Rig) -> None:
    """More parts in one order than are forked in a row."""
    (rig.folder / "spool-hostA" / "ends" / "2.end").mkdir()
    rig.order(*(rig.part(f"n{number}", "true") for number in range(40)))
    refused = rig.report("n1", "refused")
    assert refused["code"] == "nomem"
    assert "Is a directory" in refused["reason"]
    for number in {*range(40)} - {1}:
        assert rig.end(f"n{number}")["status"] == 0
    rig.run("again", "true")


def test_the_lease_ends_a_part_while_agent_and_starter_are_frozen(rig: Rig) -> None:
    rig.order(rig.part("leased", "sleep 100", deadline=boottime() + 1.5), rig.part("free", "sleep 100"))
    task, free = rig.pid_of("leased"), rig.pid_of("free")
    os.kill(rig.pid, signal.SIGSTOP)
    wait_until(lambda: not is_alive(task), 30, "the lease to end it")
    assert is_alive(free)
    os.kill(rig.pid, signal.SIGCONT)
    end = rig.end("leased")
    assert end["lease"] is True
    assert end["status"] == 9


def test_a_renewed_lease_goes_on_and_an_old_one_of_a_stopped_shepherd_ends(rig: Rig) -> None:
    now = boottime()
    rig.order(rig.part("r", "sleep 100", deadline=now + 1.0), rig.part("s", "sleep 100", deadline=now + 60))
    r, s = rig.pid_of("r"), rig.pid_of("s")
    begin = boottime()
    rig.send({"do": "renew", "deadline": begin + 3.0, "uids": None})
    assert rig.end("r")["lease"] is True
    assert boottime() >= begin + 3.0
    assert not is_alive(r)
    rig.order(rig.part("t", "sleep 100", deadline=boottime() + 0.5, two_phase=True))
    assert rig.end("t")["lease"] is True
    rig.end("s")
    assert not is_alive(s)


def test_an_agent_comes_back_to_what_happened_meanwhile(rig: Rig) -> None:
    go = rig.folder / "go"
    rig.order(rig.part("run", "sleep 100"), rig.part("end", f"while ! test -e {go}; do sleep 0.02; done; exit 9"))
    task = rig.pid_of("run")
    rig.pid_of("end")
    rig.disconnect()
    go.touch()

    def ended() -> bool:
        rig.connect()
        return any(p["uid"] == "end" and p["state"] == "gone" for p in rig.hello["parts"])

    wait_until(ended, 30, "the end in hello")
    parts = {p["uid"]: p for p in rig.hello["parts"]}
    assert parts["end"]["end"]["status"] == 9 << 8
    assert (parts["run"]["state"], parts["run"]["pid"]) == ("running", task)
    assert rig.hello["pid"] == rig.pid
    rig.send({"do": "kill", "uids": ["run"]})
    rig.gone("run")


def test_a_new_hello_replaces_the_old_connection(rig: Rig) -> None:
    old = rig.sock
    rig.sock = None
    rig.connect()
    assert old is not None
    old.settimeout(30)
    assert old.recv(1) == b""
    old.close()
    assert rig.run("x", "exit 1")["status"] == 1 << 8


def test_stale_orders_are_refused_and_known_parts_told_again(rig: Rig) -> None:
    rig.order(rig.part("a", "exit 1"), seq=50)
    rig.gone("a")
    rig.order(rig.part("b", "touch ran"), rig.part("a", "touch ran"), seq=50)
    assert rig.report("b", "refused")["code"] == "stale"

    def ends() -> list[object]:
        rig.pump()
        return [report["end"] for report in rig.reports["a"] if report["is"] == "ended"]

    wait_until(lambda: len(ends()) == 2, 30, "the end again")
    rig.order(rig.part("a", "touch ran"), seq=51)
    wait_until(lambda: len(ends()) == 3, 30, "the end again")
    assert ends() == ends()[:1] * 3
    assert not (rig.folder / "ran").exists()


def test_an_order_of_a_newer_agent_is_passed_over(rig: Rig) -> None:
    assert rig.sock is not None
    rig.sock.sendall(pack({"do": "dance", "uid": "x"}))
    assert rig.run("after", "exit 3")["status"] == 3 << 8


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x05hello",
        b"\x00\x00\x00\x02[]",
        pack({"do": 5}),
        pack({"do": "start", "seq": "x", "parts": []}),
        pack({"do": "start", "seq": 10**9, "parts": [{}]}),
        pack({"do": "kill", "uids": 5}),
        pack({"do": "signal", "uids": ["x"], "sig": 99}),
        pack({"no": "order"}),
    ],
)
def test_nonsense_costs_the_connection_only(rig: Rig, data: bytes) -> None:
    assert rig.sock is not None
    rig.sock.sendall(data)

    def dropped() -> bool:
        try:
            return not rig.pump()
        except OSError:
            return True

    wait_until(dropped, 30, "the drop")
    rig.connect()
    rig.seq = max(rig.seq, rig.hello["seq"])
    assert rig.run("after", "exit 3")["status"] == 3 << 8


def test_orders_before_hello_are_not_obeyed(rig: Rig) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as stranger:
        stranger.connect(rig.socket_path)
        stranger.sendall(pack({"do": "start", "seq": 10**6, "parts": [rig.part("x", "touch ran")]}))
        stranger.settimeout(30)
        assert stranger.recv(1) == b""
    assert rig.run("y", "exit 1")["status"] == 1 << 8
    assert not (rig.folder / "ran").exists()


def test_a_terminated_starter_ends_its_parts_first(rig: Rig) -> None:
    pid = escaped(rig, "esc", "sleep 100")
    shepherds = rig.shepherds()
    assert rig.stop() == 0
    assert not any(map(is_alive, [pid, *shepherds]))
    assert not os.path.exists(rig.socket_path)


def test_one_starter_a_folder(rig: Rig) -> None:
    args = ["--host", "b", "--dir", str(rig.folder / "spool-hostA"), "--pidfile", "p"]
    args += ["--socket", str(rig.folder / "b")]
    done = subprocess.run([sys.executable, "-I", "-S", str(ENTRY), *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "is served by process" in done.stderr
    assert rig.run("x", "exit 1")["status"] == 1 << 8


def test_a_starter_tells_systemd_that_it_is_ready_lives_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        rig = Rig(tmp_path).start()
        assert manager.recv(99) == b"READY=1"
        assert [manager.recv(99) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        assert "NOTIFY_SOCKET" not in Path(f"/proc/{rig.pid}/environ").read_text() or rig.run("env", "env", env={})["status"] == 0
        assert "NOTIFY_SOCKET" not in rig.text("env")
        assert rig.stop() == 0
        said = manager.recv(99)
        while said == b"WATCHDOG=1":
            said = manager.recv(99)
        assert said == b"STOPPING=1"


def test_a_folder_that_others_may_write_to_is_no_starters(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o777)
    args = ["--host", "b", "--dir", str(tmp_path / "spool"), "--pidfile", "p", "--socket", str(tmp_path / "run" / "b")]
    done = subprocess.run([sys.executable, "-I", "-S", str(ENTRY), *args], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "others than its owner may write to it" in done.stderr
