"""lsb.events.N and lsb.acct.N: numbered from the newest, none lost but those beyond what is kept."""

from __future__ import annotations

from pathlib import Path

from lavad.lsb import archive

DAY = archive.DAY


def test_files_move_on_by_one_number(tmp_path: Path) -> None:
    path = tmp_path / "lsb.acct"
    for text in ("a", "b", "c", "d"):
        path.write_text(text)
        archive.rotate(path, 0)
    assert path.read_text() == ""
    assert [(tmp_path / f"lsb.acct.{number}").read_text() for number in (1, 2, 3, 4)] == ["d", "c", "b", "a"]
    archive.rotate(path, 2)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["lsb.acct", "lsb.acct.1", "lsb.acct.2"]


def test_a_file_goes_by_size_or_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "lsb.acct"
    path.touch()
    assert not archive.is_due(path, 100 * DAY, 1, 1), "an empty file"
    path.write_text(f'"JOB_FINISH" "10.1" {int(10 * DAY)} 1\n')
    assert not archive.is_due(path, 100 * DAY, 0, 0)
    assert not archive.is_due(path, 12 * DAY, 1000, 3)
    assert archive.is_due(path, 14 * DAY, 1000, 3)
    assert archive.is_due(path, 12 * DAY, 10, 3)
