"""What counts as a loss: by ratio, in the right direction, from 30 % on."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.kept.compare import better, in_common, losses


def figure(metric: str = "turnaround", unit: str = "ms", value: float = 10.0, **more: Any) -> dict[str, Any]:
    return {"metric": metric, "unit": unit, "value": value, "n": 3, "note": "", **more}


def test_a_machine_that_is_twice_as_slow_loses_nothing() -> None:
    assert losses([figure(value=10.0, ratio=4.0)], [figure(value=20.0, ratio=4.1)]) == []


@pytest.mark.parametrize(("unit", "nearly", "lost", "won"), [("ms", 1.29, 1.3, 0.7), ("jobs/s", 0.71, 0.7, 1.3)])
def test_a_loss_is_thirty_percent_in_the_direction_of_its_unit(unit: str, nearly: float, lost: float, won: float) -> None:
    kept = [figure(unit=unit, ratio=1.0)]
    assert [bool(losses(kept, [figure(unit=unit, ratio=now)])) for now in (nearly, lost, won)] == [False, True, False]


def test_a_lead_on_a_peer_is_lost_when_it_shrinks_whatever_the_unit() -> None:
    kept = figure("beside_submit_command_slurm", ratio=2.0, contender="slurm")
    assert losses([kept], [{**kept, "ratio": 3.0}]) == []
    (loss,) = losses([kept], [{**kept, "ratio": 1.0}])
    assert str(loss) == "beside_submit_command_slurm: 50 % worse: lava's lead on slurm 1 now, 2 kept"


def test_a_time_without_a_floor_is_not_compared() -> None:
    assert losses([figure(value=1.0)], [figure(value=100.0)]) == []


def test_a_size_is_compared_as_it_is() -> None:
    (loss,) = losses([figure("rss_per_job", "bytes", 500.0)], [figure("rss_per_job", "bytes", 800.0)])
    assert str(loss) == "rss_per_job: 60 % worse: bytes 800 now, 500 kept"


def test_postgresql_is_held_to_sqlite_besides_its_floor() -> None:
    kept, now = figure(ratio=2.0, to_sqlite=1.2), figure(ratio=2.0, to_sqlite=2.4)
    assert [loss.kept.what for loss in losses([kept], [now])] == ["times SQLite's"]


def test_what_only_one_of_them_has_is_left_out() -> None:
    assert losses([figure("one", ratio=1.0)], [figure("other", ratio=9.0)]) == []
    assert in_common([figure("one", ratio=1.0)], [figure("other", ratio=9.0)]) == 0
    assert in_common([figure("one", ratio=1.0)], [figure("one", ratio=9.0)]) == 1


def test_a_kept_nothing_says_nothing() -> None:
    """Memory that did not grow at all has no ratio to what it is now."""
    assert losses([figure("rss", "bytes", 0.0)], [figure("rss", "bytes", 100.0)]) == []


def test_of_two_runs_the_better_counts() -> None:
    slow, quick = figure(ratio=9.0), figure(ratio=3.0)
    assert better([slow], [quick]) == better([quick], [slow]) == [quick]
    few, many = figure(unit="jobs/s", ratio=1.0), figure(unit="jobs/s", ratio=2.0)
    assert better([few], [many]) == better([many], [few]) == [many]
    assert better([slow], []) == [slow]
