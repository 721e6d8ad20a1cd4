"""The disk of a starter fills up, turns read-only or fails, or it runs out of files: new parts are refused, no part is lost."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemons.starters import Rig, children
from tests.support.processes import is_alive
from tests.support.wait import wait_until

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount")


def mounted(path: Path, *words: str) -> None:
    path.mkdir()
    done = subprocess.run(["mount", *words, str(path)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr}")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Rig]:
    """A starter whose spool is a file system of its own, of a megabyte."""
    spool = tmp_path / "spool-hostA"
    mounted(spool, "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs")
    yield from serving(Rig(tmp_path), spool)


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[Rig]:
    """One whose spool is a disk that can be made to fail, for good."""
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("there is no mkfs.ext4")
    image, spool = tmp_path / "image", tmp_path / "spool-hostA"
    with open(image, "wb") as file:
        file.truncate(16 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    mounted(spool, "-o", "loop,errors=remount-ro", str(image))
    yield from serving(Rig(tmp_path), spool)


def serving(rig: Rig, spool: Path) -> Iterator[Rig]:
    try:
        yield rig.start()
        if rig.process is not None and rig.process.poll() is None:
            rig.stop()
    finally:
        if rig.process is not None and rig.process.poll() is None:
            rig.kill()
        subprocess.run(["umount", "-l", str(spool)], check=False)


def fill(spool: Path) -> Path:
    """Fill the file system to the last byte."""
    ballast = spool / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return ballast


@root_only
def test_a_full_disk_refuses_what_is_new_and_keeps_what_ends_for_later(full: Rig) -> None:
    rig, go = full, full.folder / "go"
    rig.run("idle", "exit 1")
    rig.send({"do": "forget", "uids": ["idle"]})
    rig.order(rig.part("old", f"while ! test -e {go}; do sleep 0.02; done; exit 7"))
    task = rig.pid_of("old")
    ballast = fill(rig.folder / "spool-hostA")
    rig.order(*[rig.part(f"new{n}" + "x" * 4000, "exit 1") for n in range(8)])
    rig.report("new7" + "x" * 4000, "refused")
    assert is_alive(task)
    go.touch()
    assert rig.end("old")["status"] == 7 << 8
    rig.gone("old")
    ballast.unlink()
    journal = rig.folder / "spool-hostA" / "journal"
    wait_until(lambda: b'"old"' in journal.read_bytes() and b'"end":{' in journal.read_bytes(), 30, "the end in the journal")
    assert rig.run("later", "exit 2")["status"] == 2 << 8
    rig.kill()
    rig.start()
    # of a part that its shepherd refused, as there was room for its entry alone, it may be said again
    ends = {part["uid"]: part["end"]["status"] for part in rig.hello["parts"] if not part["uid"].startswith("new")}
    assert ends == {"old": 7 << 8, "later": 2 << 8}


@root_only
def test_a_disk_that_fails_ends_no_part(failing: Rig) -> None:
    rig, go = failing, failing.folder / "go"
    rig.run("idle", "exit 1")
    wait = f"while ! test -e {go}; do sleep 0.02; done"
    rig.order(rig.part("ends", f"{wait}; exit 7"), rig.part("lost", "sleep 100"), rig.part("stays", "sleep 100"))
    lost, stays = rig.pid_of("lost"), rig.pid_of("stays")
    rig.pid_of("ends")
    spool = rig.folder / "spool-hostA"
    done = subprocess.run(["mount", "-o", "remount,abort", str(spool)], capture_output=True, text=True)
    with contextlib.suppress(OSError):
        (spool / "more").touch()
        pytest.skip(f"the disk did not fail: {done.stderr}")
    rig.order(rig.part("new", "exit 1"))
    assert rig.report("new", "refused")["code"] == "nomem"
    go.touch()
    assert rig.end("ends")["status"] == 7 << 8
    rig.gone("ends")
    rig.send({"do": "forget", "uids": ["idle", "ends"]})
    assert set(rig.known()) == {"lost", "stays"}
    for idle in [one for one in rig.shepherds() if not children(one)]:
        os.kill(idle, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{idle}"), 20, "the starter to reap it")  # noqa: B023
    os.kill(next(one for one in rig.shepherds() if lost in children(one)), signal.SIGKILL)
    assert "signal 9" in rig.report("lost", "lost")["reason"]
    assert not is_alive(lost)
    rig.send({"do": "forget", "uids": ["lost"]})
    rig.send({"do": "kill", "uids": ["stays"]})
    assert rig.end("stays")["status"] == signal.SIGKILL
    assert set(rig.known()) == {"stays"}
    assert not is_alive(stays)


def test_a_part_is_not_lost_because_a_starter_without_files_cannot_look(rig: Rig) -> None:
    rig.order(rig.part("a", "sleep 100 & sleep 100"), rig.part("b", "sleep 100"))
    tasks = [rig.pid_of("a"), rig.pid_of("b")]
    shepherd = next(one for one in rig.shepherds() if tasks[0] in children(one))
    below = children(tasks[0])
    soft, hard = resource.prlimit(rig.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(rig.pid, resource.RLIMIT_NOFILE, (3, hard))
    os.kill(shepherd, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{shepherd}"), 20, "the starter to reap it")
    # what a request needs, a shepherd of its own, is refused; but the loop goes round
    for number in range(2):
        rig.send({"do": "read", "id": number, "user": rig.part("x", "")["user"], "path": "/x", "offset": 0, "limit": 9})
        assert "error" in rig.frame("data")
    assert not [report for report in rig.reports["a"] if report["is"] == "lost"]
    resource.prlimit(rig.pid, resource.RLIMIT_NOFILE, (soft, hard))
    rig.report("a", "lost")
    assert not any(map(is_alive, [tasks[0], *below]))
    assert is_alive(tasks[1])
