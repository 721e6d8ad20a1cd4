"""A log that hangs holds nobody up, and has all lines in their order once it is written again."""

from __future__ import annotations

import io
import logging
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proto.daemon import log_thread
from proto.daemon.log_thread import LogThread


def logger(handler: logging.Handler) -> logging.Logger:
    found = logging.Logger("test")
    found.addHandler(handler)
    return found


def test_a_line_is_written_when_it_is_logged(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        log = logger(LogThread(stream))
        for number in range(3):
            log.warning("line %d", number)
            assert (tmp_path / "log").read_text().splitlines()[-1] == f"line {number}"


def test_who_logs_goes_on_while_the_log_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader of a pipe that is full does not read; the lines beyond those that are kept are counted."""
    monkeypatch.setattr(log_thread, "PATIENCE", 0.1)
    monkeypatch.setattr(log_thread, "MOST", 50)
    reader, writer = os.pipe()
    with open(writer, "w") as stream:
        handler = LogThread(stream)
        log = logger(handler)
        for number in range(60):
            log.warning("%d %s", number, "x" * 10_000)
        log.warning("last")
        found = b""
        while b"left out" not in found:
            found += os.read(reader, 1 << 20)
        numbers = [int(line.split()[0]) for line in found.splitlines() if b"x" in line]
        assert numbers == list(range(len(numbers)))
        told = found.splitlines()[-1].decode()
        assert told == f"{61 - len(numbers)} lines were left out while the log could not be written"
        handler.flush()
        log.warning("again")
        assert os.read(reader, 1 << 20) == b"again\n"
    os.close(reader)


def test_a_line_that_cannot_be_formatted_is_one_that_says_so(tmp_path: Path) -> None:
    """And costs nothing else."""
    with (tmp_path / "log").open("w") as stream:
        log = logger(LogThread(stream))
        log.warning("%d", "three")
        log.warning("next")
    said, after = (tmp_path / "log").read_text().splitlines()
    assert re.fullmatch(r"a line of .*test_log_thread.py:\d+ cannot be formatted: TypeError\(.*\)", said)
    assert after == "next"


def test_lines_are_written_where_there_is_no_room_for_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with (tmp_path / "log").open("w") as stream:
        log = logger(LogThread(stream))
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", none_left)
            log.warning("first")
        log.warning("second")
    assert (tmp_path / "log").read_text() == "first\nsecond\n"


class Stream(io.StringIO):
    """Logs while it is written to, once, as an object may that its thread frees."""

    log: logging.Logger | None = None

    def write(self, text: str) -> int:
        if (log := self.log) is not None:
            self.log = None
            log.warning("within")
        return super().write(text)


def test_the_thread_may_log_itself() -> None:
    stream = Stream()
    handler = LogThread(stream)
    stream.log = log = logger(handler)
    log.warning("first")
    handler.flush()
    assert stream.getvalue() == "first\nwithin\n"


FORKS = """
import logging, os, sys
from proto.daemon.logs import log_to
log_to(sys.stderr, "%(message)s")
logging.warning("parent")
if os.fork() == 0:
    logging.warning("child")
    os._exit(0)
os.wait()
logging.warning("end")
"""


def test_a_fork_has_a_thread_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True)
    assert done.stderr == "parent\nchild\nend\n"
