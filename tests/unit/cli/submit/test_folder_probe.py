"""The file that hosts look for while a job with checkpoints is submitted: where it is, and that it goes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.submit.folder_probe import written


@pytest.mark.parametrize("below", ["", "not/there/yet"])
def test_it_is_in_the_folder_or_on_the_way_to_it(tmp_path: Path, below: str) -> None:
    frame: dict[str, object] = {"ask": "submit", "checkpoint_folder": str(tmp_path / below)}
    with written(frame) as sent:
        path = Path(str(sent["checkpoint_probe"]))
        assert path.parent == tmp_path
        assert path.stat().st_mode & 0o777 == 0o600
        assert os.path.ismount(str(sent["checkpoint_mount"]))
        assert "checkpoint_probe" not in frame
    assert list(tmp_path.iterdir()) == []


def test_it_goes_away_with_a_refusal(tmp_path: Path) -> None:
    def refused() -> None:
        with written({"checkpoint_folder": str(tmp_path)}):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        refused()
    assert list(tmp_path.iterdir()) == []


def test_where_none_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("", str(tmp_path / "file"), str(tmp_path / "file" / "x"), "/proc/lava"):
        with written({"checkpoint_folder": folder}) as sent:
            assert "checkpoint_probe" not in sent
