"""Kept output goes when it is old, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

from agent.core.kept_output import Finished
from agent.parts.output_retention import clean, in_use_anywhere, is_shared, left, remove, size_of


def test_old_output_goes_and_nothing_else(tmp_path: Path) -> None:
    user = tmp_path / "output" / "bob"
    user.mkdir(parents=True)
    for name in ("1.out", "1.err", "2.3.out", "4.out", "1700000000.7.1.0.shell", "notes.out", "5.out.txt", "new.err"):
        (user / name).touch()
        os.utime(user / name, (1000, 1000))
    (user / "8.out").touch()
    (user / "9.out").symlink_to(user / "notes.out")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "1.out").touch()
    os.utime(tmp_path / "elsewhere" / "1.out", (1000, 1000))
    (tmp_path / "output" / "mallory").symlink_to(tmp_path / "elsewhere")
    assert clean(str(tmp_path / "output"), 2000.0, {str(user / "4.out")}) == 4
    left = sorted(path.name for path in user.iterdir())
    assert left == ["4.out", "5.out.txt", "8.out", "9.out", "new.err", "notes.out"]
    assert (tmp_path / "elsewhere" / "1.out").exists()
    assert clean(str(tmp_path / "none"), 2000.0, ()) == 0


def test_what_is_left_is_listed_by_what_it_takes_on_the_disk_and_removed_one_by_one(tmp_path: Path) -> None:
    """A hole takes nothing; a link to a file or folder elsewhere leads nowhere."""
    user, elsewhere = tmp_path / "output" / "bob", tmp_path / "elsewhere"
    user.mkdir(parents=True)
    elsewhere.mkdir()
    for path in (user / "1.out", user / "notes.out", elsewhere / "1.out"):
        path.write_bytes(b"x" * 8192)
    (user / "2.out").touch()
    os.truncate(user / "2.out", 1 << 30)
    (user / "3.out").symlink_to(elsewhere / "1.out")
    (tmp_path / "output" / "mallory").symlink_to(elsewhere)
    found = left(str(tmp_path / "output"))
    assert [(file.user, file.name, file.size) for file in found] == [("bob", "1.out", size_of(str(user / "1.out")))]
    assert found[0].size >= 8192
    assert (size_of(str(user / "3.out")), size_of(str(user / "none"))) == (0, 0)
    assert remove(str(tmp_path / "output"), found[0])
    assert not remove(str(tmp_path / "output"), found[0])
    assert not remove(str(tmp_path / "output"), Finished("mallory", "1.out", 8192, 0.0))
    assert not remove(str(tmp_path / "output"), Finished("bob", "notes.out", 8192, 0.0))
    assert (elsewhere / "1.out").exists()
    assert left(str(tmp_path / "none")) == []


def test_hosts_that_share_a_folder_know_of_it(tmp_path: Path) -> None:
    assert [is_shared(str(tmp_path), host) for host in ("a", "a", "b", "a")] == [False, False, True, True]
    assert left(str(tmp_path)) == []
    (tmp_path / "file").touch()
    assert is_shared(str(tmp_path / "file"), "a")


def test_old_output_of_a_job_that_runs_on_another_host_of_the_folder_stays(tmp_path: Path) -> None:
    """As long as that host is there."""
    folder = tmp_path / "output"
    (folder / "bob").mkdir(parents=True)
    ours, theirs = str(folder / "bob" / "1.out"), str(folder / "bob" / "2.out")
    for path in (ours, theirs, str(folder / "bob" / "3.out")):
        Path(path).touch()
        os.utime(path, (1000, 1000))
    assert in_use_anywhere(str(folder), "b", [theirs], 2000.0) == {theirs}
    used = in_use_anywhere(str(folder), "a", [ours], 2000.0)
    assert used == {ours, theirs}
    assert clean(str(folder), 2000.0, used) == 1
    os.utime(folder / ".hosts" / "b", (1000, 1000))
    assert is_shared(str(folder), "a")
    assert in_use_anywhere(str(folder), "a", [], 2000.0) == set()
    assert not is_shared(str(folder), "a")
    (tmp_path / "file").touch()
    assert in_use_anywhere(str(tmp_path / "file"), "a", [ours], 2000.0) == {ours}
