"""Shepherds are the same whoever forks them, and there are shepherds whatever becomes of who forks them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.starter.part import native_parts
from tests.support.daemons.starters import NOBODY, Rig, alive
from tests.support.wait import wait_until

SAME = re.compile(r"^(?:Name|Umask|PPid|Uid|Gid|Groups|SigBlk|SigIgn|SigCgt|CapInh|CapPrm|CapEff|CapBnd|NoNewPrivs):.*$", re.M)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    if not os.path.exists(native_parts.LIBRARY) or os.environ.get("LAVA_NATIVE", "").startswith("N"):
        pytest.skip("no native code: the starter forks every shepherd")
    one = Rig(tmp_path).start()
    yield one
    if one.process is not None and one.process.poll() is None:
        assert one.stop() == 0


def facts(pid: int) -> tuple[object, ...]:
    """What a shepherd is, but for its files."""
    folder = Path(f"/proc/{pid}")
    status = SAME.findall((folder / "status").read_text())
    return status, os.getsid(pid) == pid, os.readlink(folder / "cwd"), (folder / "oom_score_adj").read_text()


def test_a_shepherd_is_the_same_whoever_forks_it(rig: Rig) -> None:
    """Its files, too: the socket, the end file and the pipe of its signals, and in Python what it waits with."""
    forker = rig.forker()
    assert forker is not None
    os.chmod(rig.folder, 0o755)
    user = NOBODY if os.getuid() == 0 else None
    more = {"user": user, "stdout": {"path": "/dev/null"}, "cwd": "/"} if user else {}
    rig.order(rig.part("a", ["sleep", "100"], **more), rig.part("b", ["sleep", "100"], **more))
    rig.pid_of("a"), rig.pid_of("b")
    forked = rig.shepherds()
    assert len(forked) == 2
    for pid in forked:
        files = sorted(os.listdir(f"/proc/{pid}/fd"), key=int)
        assert files == [str(fd) for fd in range(7)]
        assert os.readlink(f"/proc/{pid}/fd/4").endswith(".end")
    os.kill(forker, signal.SIGKILL)
    wait_until(lambda: "the starter forks them" in rig.log(), 20, "the starter to note it")
    rig.order(rig.part("c", ["sleep", "100"], **more))
    rig.pid_of("c")
    (other,) = set(rig.shepherds()) - set(forked)
    assert facts(forked[0]) == facts(forked[1]) == facts(other)
    assert rig.forker() is None
    rig.send({"do": "kill", "uids": ["a", "b", "c"]})
    for uid in ("a", "b", "c"):
        assert rig.end(uid)["status"] == signal.SIGKILL
        rig.gone(uid)
    assert rig.run("d", "exit 3")["status"] == 3 << 8


def test_one_that_does_not_answer_is_ended_and_its_parts_run(rig: Rig) -> None:
    forker = rig.forker()
    assert forker is not None
    os.kill(forker, signal.SIGSTOP)
    assert rig.run("a", "echo here")["status"] == 0
    assert rig.text("a") == "here\n"
    wait_until(lambda: not alive(forker), 20, "its end")


def test_it_ends_with_a_starter_that_is_killed(rig: Rig) -> None:
    forker = rig.forker()
    assert forker is not None
    rig.kill()
    wait_until(lambda: not alive(forker), 20, "its end")
