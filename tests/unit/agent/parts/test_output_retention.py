"""Kept output goes when it is old, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

from agent.parts.output_retention import clean, days


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


def test_the_period_is_a_number_of_days() -> None:
    assert [days(word) for word in ("", "x", "0", "1.5", "-3")] == [7.0, 7.0, 0.0, 1.5, 0.0]
