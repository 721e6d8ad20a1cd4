"""What a starter that was killed has left: found by a child, as its reading may never end."""

from __future__ import annotations

from agent.starter.supervisor.leftovers import found_by_child


def test_more_processes_than_a_pipe_holds_are_all_told_and_no_number_is_cut() -> None:
    found = {100_000 + at: 7_000_000 + at for at in range(20_000)}
    assert found_by_child(lambda: found) == found
    assert found_by_child(dict) == {}
