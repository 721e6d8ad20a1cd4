"""Until when leased parts may run, by what masters have answered."""

from __future__ import annotations

from agent.core.lease import Granted


def test_a_lease_counts_from_what_was_answered_last() -> None:
    granted = Granted(100.0)
    assert granted.deadline(0.0) is None
    assert granted.deadline(600.0) == 700.0
    granted = granted.answered(150.0, 0.0).answered(120.0, 0.0)
    assert (granted.deadline(600.0), granted.deadline(90.0)) == (750.0, 240.0)
    assert granted.greeted(140.0).deadline(600.0) == 740.0


def test_an_extension_is_the_same_for_all_and_outlives_a_new_stream() -> None:
    granted = Granted(100.0).answered(200.0, 1_000.0).greeted(300.0)
    assert (granted.deadline(60.0), granted.deadline(5_000.0), granted.deadline(0.0)) == (1_200.0, 5_300.0, None)
