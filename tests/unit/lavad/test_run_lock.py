"""Of two lavad with one name in a run folder the second does not start; a successor has its predecessor's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.run_lock import RunLock, RunLocked


def test_the_second_of_one_name_says_so(tmp_path: Path) -> None:
    first = RunLock(str(tmp_path), "m1", 1)
    with pytest.raises(RunLocked, match=r"lavad\.lock is locked: lavad number 1 of m1 runs already"):
        RunLock(str(tmp_path), "m1", 1)
    other = RunLock(str(tmp_path), "m1", 2)
    assert other.holder != first.holder
    holder = first.holder
    first.release()
    again = RunLock(str(tmp_path), "m1", 1)
    assert again.holder == holder
    again.release()
    other.release()


def test_the_same_name_on_another_machine_is_another_master(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = RunLock(str(tmp_path / "a"), "m1", 1), RunLock(str(tmp_path / "b"), "m1", 1)
    assert one.holder.startswith("m1/1 ")
    assert one.holder != two.holder
    one.release()
    two.release()
