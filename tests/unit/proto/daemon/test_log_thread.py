"""A log that hangs holds nobody up, and has all lines in their order once it is written again."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
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
