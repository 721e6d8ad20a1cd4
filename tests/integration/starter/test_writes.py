"""A real starter writes for jobs that are over: reports, and output that was kept, by a shepherd of the job's user."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.starters import ME, NOBODY, Rig
from tests.support.wait import wait_until


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    one = Rig(tmp_path).start()
    yield one
    one.stop()


def write(rig: Rig, uid: str, path: Path | str, do: str = "append", **more: Any) -> str:
    """Its error, "" when it was written."""
    rig.reports.pop(uid, None)
    rig.send({"do": do, "id": uid, "user": ME, "path": str(path), "text": "", **more})
    return str(rig.report(uid, "wrote")["error"])


def test_text_is_appended_or_takes_the_place_of_what_was_there(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "file"
    assert "No such file" in write(rig, "a", file, text="one\n")
    assert write(rig, "a", file, text="one\n", mkdir=True, umask=0o077) == ""
    assert write(rig, "b", file, text="zwei \u00fc \udcff\n") == ""
    assert file.read_bytes() == b"one\nzwei \xc3\xbc \xff\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert write(rig, "c", file, text="new\n", truncate=True) == ""
    assert file.read_text() == "new\n"


def test_no_process_is_started_for_it(rig: Rig, tmp_path: Path) -> None:
    rig.run("p", "true", pre_exec="true")
    shepherds = rig.shepherds()
    for number in range(20):
        assert write(rig, f"w{number}", tmp_path / "file", text=f"{number}\n") == ""
    assert rig.shepherds() == shepherds
    assert (tmp_path / "file").read_text().split() == [str(number) for number in range(20)]


def test_what_was_written_for_a_part_is_not_written_again(rig: Rig, tmp_path: Path) -> None:
    rig.run("p", "true")
    for _ in range(2):
        assert write(rig, "p", tmp_path / "file", text="report\n") == ""
    rig.kill()
    rig.start()
    assert rig.known()["p"]["wrote"] == ""
    assert write(rig, "p", tmp_path / "file", text="report\n") == ""
    assert (tmp_path / "file").read_text() == "report\n"


def test_kept_output_is_delivered_between_header_and_end(rig: Rig, tmp_path: Path) -> None:
    out, err = tmp_path / "kept.out", tmp_path / "kept.err"
    out.write_bytes(b"output " * 400_000)
    err.write_text("error\n")
    kept = {"from": str(out), "header": "head\n", "text": "tail\n"}
    errors = {"from_error": str(err), "error": str(tmp_path / "errors")}
    assert write(rig, "d", tmp_path / "to", "deliver", **kept, **errors) == ""
    assert (tmp_path / "to").read_bytes() == b"head\n" + b"output " * 400_000 + b"tail\n"
    assert (tmp_path / "errors").read_text() == "error\n"
    assert not out.exists()
    assert not err.exists()
    out.write_text("more\n")
    assert "no" in write(rig, "e", tmp_path / "no" / "to", "deliver", **kept)
    assert out.read_text() == "more\n"


def test_a_pipe_or_a_full_disk_holds_up_nobody(rig: Rig, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert str(tmp_path / "pipe") in write(rig, "a", tmp_path / "pipe", text="x")
    assert "No space left" in write(rig, "b", "/dev/full", text="x")
    assert rig.run("p", "true")["status"] == 0


READY = "import signal, time; signal.signal(signal.SIGUSR1, lambda *_: print('asked', flush=True)); time.sleep(100)"


def test_a_signal_that_asks_reaches_only_who_catches_it(rig: Rig, tmp_path: Path) -> None:
    """Neither a program that is not ready yet nor the shell around it dies of being asked."""
    command = f'while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; {sys.executable} -I -S -c "{READY}"; true'
    rig.order(rig.part("p", command))
    rig.pid_of("p")
    rig.send({"do": "signal", "uids": ["p"], "sig": signal.SIGUSR1, "scope": "catching", "within": 30})
    (tmp_path / "go").touch()
    wait_until(lambda: rig.text("p") == "asked\n", 30, "the program to be asked")
    rig.order(rig.part("deaf", "sleep 100"))
    rig.pid_of("deaf")
    rig.send({"do": "signal", "uids": ["deaf"], "sig": signal.SIGUSR1, "scope": "catching", "within": 0.3})
    assert rig.report("deaf", "deaf")["sig"] == signal.SIGUSR1
    assert rig.known()["deaf"]["state"] == "running"


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_only_what_the_user_may_write_is_written(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0o600)
    error = write(rig, "a", tmp_path / "secret", text="x", user=NOBODY)
    assert "Permission denied" in error
    assert (tmp_path / "secret").read_text() == ""
    rig.send({"do": "append", "id": "bad", "user": {"uid": -1, "gid": 0, "name": "ghost"}, "path": "/x", "text": ""})
    assert "ghost" in rig.report("bad", "wrote")["error"]
    wait_until(lambda: rig.run("p", "true")["status"] == 0, 30, "the starter to go on")
