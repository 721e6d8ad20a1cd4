"""In whose place others could put a folder of theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from proto.localsocket import why_not_kept


@pytest.mark.parametrize(("mode", "kept"), [(0o755, True), (0o1777, True), (0o777, False), (0o757, False), (0o700, True)])
def test_a_folder_above_that_others_may_write_to(tmp_path: Path, mode: int, kept: bool) -> None:
    (folder := tmp_path / "above" / "between" / "run").mkdir(parents=True)
    (tmp_path / "above").chmod(mode)
    why = why_not_kept(str(folder))
    told = f"{folder}: {tmp_path}/above belongs to user {os.geteuid()} and has mode {mode:04o}"
    assert why.startswith(told) != kept
    assert (not why) == kept
    assert (not why_not_kept(str(folder / "not" / "there"))) == kept


def test_the_way_through_a_link_counts_as_well(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "own" / "run").mkdir(parents=True)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "own")
    assert why_not_kept(str(tmp_path / "own" / "run")) == ""
    assert f"{tmp_path}/open belongs" in why_not_kept(str(tmp_path / "open" / "link" / "run"))
    (tmp_path / "open" / "run").mkdir()
    (tmp_path / "own" / "back").symlink_to(tmp_path / "open")
    assert f"{tmp_path}/open belongs" in why_not_kept(str(tmp_path / "own" / "back" / "run"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder away")
def test_a_folder_above_of_another_account_or_that_another_group_may_write_to(tmp_path: Path) -> None:
    (folder := tmp_path / "above" / "run").mkdir(parents=True)
    os.chown(tmp_path / "above", 65534, 0)
    assert "above belongs to user 65534" in why_not_kept(str(folder))
    os.chown(tmp_path / "above", 0, 0)
    assert why_not_kept(str(folder)) == ""
    (tmp_path / "above").chmod(0o775)
    assert "above belongs to user 0 and has mode 0775" in why_not_kept(str(folder))
