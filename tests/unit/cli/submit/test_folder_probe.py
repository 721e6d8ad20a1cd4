"""The file that hosts look for while a job with checkpoints is submitted: where it is, and that it goes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.submit.folder_probe import MOST, written, written_all


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


def test_many_submissions_have_one_file_in_each_folder(tmp_path: Path) -> None:
    def frame(folder: str) -> dict[str, object]:
        return {"command": folder, "checkpoint_folder": str(tmp_path / folder)} if folder else {"command": "none"}

    folders = [f"f{number}" for number in range(MOST + 2)]
    for folder in folders:
        (tmp_path / folder).mkdir()
    elsewhere: dict[str, object] = {"command": "shm", "checkpoint_folder": "/dev/shm"}
    with written_all([frame(folder) for folder in ("", "f0", "f0", *folders)] + [elsewhere]) as sent:
        files = [str(one.get("checkpoint_probe", "")) for one in sent]
        assert [one["command"] for one in sent] == ["none", "f0", "f0", *folders, "shm"]
        assert sent[0] == {"command": "none"}
        assert files[1] == files[2] == files[3]
        there = [path for path in dict.fromkeys(files) if path and Path(path).exists()]
        assert len(there) == MOST
        assert files[-1] in there, "each file system has one"
        assert all(os.path.ismount(str(one["checkpoint_mount"])) for one in sent[1:]), "what is found out holds for all there"
    assert not any(Path(path).exists() for path in there)
    plain: list[dict[str, object]] = [{"command": "x"}]
    with written_all(plain) as sent:
        assert sent is plain
