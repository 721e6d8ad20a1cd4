"""Scratch folders: the user's own, or not used at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.starter.system import scratch


def test_a_folder_is_made_found_again_and_removed(tmp_path: Path) -> None:
    """Made once, the same again, gone with all that is in it."""
    path = tmp_path / "lava-0" / "7.worker.0"
    assert scratch.make(str(path)) == ""
    (path / "deep").mkdir()
    assert scratch.make(str(path)) == ""
    assert (path / "deep").is_dir()
    assert path.stat().st_mode & 0o777 == 0o700
    scratch.remove(str(path))
    assert not path.exists()
    scratch.remove(str(path))


def test_a_temporary_folder_whose_name_is_taken_has_another_one(tmp_path: Path) -> None:
    path = str(tmp_path / "7.tmpdir")
    assert scratch.make_own(path) == path
    assert scratch.make_own(path) == path, "that of an earlier attempt"
    away = tmp_path / "away"
    away.mkdir()
    for number, taken in enumerate(("link", "file", "open")):
        path = str(tmp_path / f"{number}.tmpdir")
        if taken == "link":
            os.symlink(away, path)
        elif taken == "file":
            Path(path).touch()
        else:
            os.mkdir(path)
            os.chmod(path, 0o777)
        made = Path(scratch.make_own(path))
        assert made.name.startswith(f"{number}.tmpdir.")
        assert made.stat().st_mode & 0o777 == 0o700
        assert made != Path(scratch.make_own(path))
    with pytest.raises(FileNotFoundError):
        scratch.make_own(str(tmp_path / "no" / "such"))
    assert not list(away.iterdir())


def test_what_somebody_else_prepared_is_not_used(tmp_path: Path) -> None:
    """Bad input: a link, a file, a folder that others may write to, in the place of a user's folder."""
    around = tmp_path / "lava-0"
    away = tmp_path / "away"
    away.mkdir()
    around.symlink_to(away)
    assert "not a folder of the user's own" in scratch.make(str(around / "x"))
    around.unlink()
    around.mkdir()
    os.chmod(around, 0o777)
    assert "not a folder of the user's own" in scratch.make(str(around / "x"))
    os.chmod(around, 0o700)
    (around / "x").write_text("")
    assert "not a folder of the user's own" in scratch.make(str(around / "x"))
    assert not list(away.iterdir())
