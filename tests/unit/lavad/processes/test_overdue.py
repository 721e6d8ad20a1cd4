"""A call that hangs is told of while it does, once, and when it has ended."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from lavad.processes.overdue import Overdue
from tests.support.wait import wait_until


def test_a_write_that_hangs_is_told_of_until_it_ends(tmp_path: Path) -> None:
    said: list[str] = []
    overdue = Overdue(said.append, "it hangs", 0.1)
    os.mkfifo(tmp_path / "fifo")

    def write() -> None:
        with overdue.watched():
            (tmp_path / "fifo").write_text("x")  # hangs until somebody reads

    writing = threading.Thread(target=write)
    writing.start()
    wait_until(lambda: said == ["it hangs"], 20, "the line")
    assert (tmp_path / "fifo").read_text() == "x"
    writing.join()
    assert said == ["it hangs", ""]


def test_calls_that_end_are_not_told_of() -> None:
    said: list[str] = []
    overdue = Overdue(said.append, "it hangs", 3600.0)
    for _ in range(3):
        with overdue.watched():
            pass
    assert said == []
