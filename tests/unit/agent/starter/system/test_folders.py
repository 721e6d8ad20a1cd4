"""Folders that root's daemons trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.starter.system import folders


def test_one_is_made_and_one_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    folders.make_own(str(path), 0o700)
    assert path.stat().st_mode & 0o777 == 0o700
    folders.make_own(str(path))
    for mode in (0o770, 0o777, 0o1777, 0o722):
        path.chmod(mode)
        with pytest.raises(folders.NotOwn, match="may write to it"):
            folders.make_own(str(path))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="exists"):
        folders.make_own(str(tmp_path / "file"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder away")
def test_one_of_another_account_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    with pytest.raises(folders.NotOwn, match="belongs to user 65534"):
        folders.make_own(str(tmp_path))
