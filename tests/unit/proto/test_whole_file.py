"""Files that are replaced in one move: others who may write in their folder change nothing, and no thread another's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from proto.whole_file import remove_unfinished, replace_file, write_pid


def test_a_link_under_a_name_that_can_be_guessed_is_not_written_through(tmp_path: Path) -> None:
    """The pid is known to anybody who may write in the folder."""
    path, others = tmp_path / "secret", tmp_path / "others"
    others.write_text("theirs")
    guessed = [tmp_path / f"secret.{what}" for what in (os.getpid(), "new", f"{os.getpid()}.new")]
    for name in guessed:
        os.link(others, name)
    with others.open() as held:
        replace_file(str(path), "mine", 0o600)
        assert (path.read_text(), held.read(), others.read_text()) == ("mine", "theirs", "theirs")
    assert (path.stat().st_mode & 0o777, path.stat().st_nlink) == (0o600, 1)
    assert set(tmp_path.iterdir()) == {path, others, *guessed}


def test_threads_that_write_the_same_file_leave_a_whole_one(tmp_path: Path) -> None:
    path, wrong, together = tmp_path / "state", list[str](), threading.Barrier(4)

    def write(letter: str) -> None:
        together.wait()
        for _ in range(100):
            try:
                replace_file(str(path), letter * 200_000)
                found = path.read_text()
            except OSError as error:
                wrong.append(str(error))
            else:
                wrong.extend([found[:9]] if len(found) != 200_000 or len(set(found)) > 1 else [])

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert os.listdir(tmp_path) == ["state"]


def test_the_former_file_stays_where_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(str(path), "x")
    assert os.listdir(tmp_path) == ["folder"]


KILLED = """
import os, sys
from proto import whole_file
os.replace = lambda *_: os.kill(os.getpid(), 9)
whole_file.replace_file(sys.argv[1], "x")
"""


def test_what_a_killed_process_left_goes_when_the_next_one_begins(tmp_path: Path) -> None:
    for name in ("pid", "state"):
        subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / name)], check=False)
    (tmp_path / "mine.1.new").touch()
    assert len(list(tmp_path.iterdir())) == 3
    write_pid(str(tmp_path / "pid"))
    assert [path.name.partition(".")[0] for path in sorted(tmp_path.iterdir())] == ["mine", "pid", "state"]
    assert (tmp_path / "pid").read_text() == f"{os.getpid()}\n"
    remove_unfinished(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"mine.1.new", "pid"}
    remove_unfinished(str(tmp_path / "none"))
