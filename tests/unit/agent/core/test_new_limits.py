"""Limits of a part that runs, which bmod has changed."""

from __future__ import annotations

import pytest

from agent.core import decide
from agent.core.part import Rules
from tests.unit.agent.core.test_decide import running, sent


def test_other_limits_for_a_part_that_runs() -> None:
    part = running(Rules(run=60, warn="23", warn_before=20))
    part, _ = decide.tick(part, 140.0)
    part, effects = decide.limited(part, 120, 0, 0, 0, 0, 141.0)
    assert sent(effects) == []
    assert decide.wake_at(part) == 200.0
    part, effects = decide.limited(part, 30, 0, 0, 0, 0, 150.0)
    assert part.limit == "TERM_RUNLIMIT"
    _, effects = decide.limited(decide.ended(part), 1, 1, 1, 1, 1, 150.0)
    assert effects == []


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ((0, 10, 0, 0, 0), "TERM_CPULIMIT"),
        ((0, 0, 900, 0, 0), "TERM_MEMLIMIT"),
        ((0, 0, 0, 900, 0), "TERM_SWAP"),
        ((0, 0, 0, 0, 3), "TERM_PROCESSLIMIT"),
        ((0, 0, 0, 0, 0), ""),
    ],
)
def test_a_limit_that_is_set_while_it_runs_holds_in_place_of_the_former(limits: tuple[int, ...], limit: str) -> None:
    former = Rules(cpu=5, mem=500, swap=500, processes=2, enforce_memory=True)
    run, cpu, mem, swap, processes = limits
    part, _ = decide.limited(running(former), run, cpu, mem, swap, processes, 150.0)
    part, _ = decide.used(part, 200.0, 11.0, 1000, 0, 4)
    assert part.limit == limit
