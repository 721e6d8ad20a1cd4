"""What a starter that was killed has left: found by children, as their reading may never end."""

from __future__ import annotations

import time
from collections.abc import Iterator

from agent.starter.supervisor.leftovers import found_by_children


def test_more_processes_than_a_pipe_holds_are_all_told_and_no_number_is_cut() -> None:
    found = {100_000 + at: 7_000_000 + at for at in range(20_000)}
    assert found_by_children([found.items]) == found
    assert found_by_children([dict[int, int]().items]) == {}
    assert found_by_children([]) == {}


def test_a_user_whose_process_cannot_be_read_hides_none_of_others() -> None:
    def hangs() -> Iterator[tuple[int, int]]:
        yield 1, 10
        time.sleep(1000)
        yield 2, 20

    def fails() -> Iterator[tuple[int, int]]:
        yield 3, 30
        raise OSError

    others = {100 + at: at for at in range(20_000)}
    assert found_by_children([hangs, fails, others.items], longest=3.0) == {1: 10, 3: 30, **others}
