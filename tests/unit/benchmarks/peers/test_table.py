"""The table beside the peers: whose lead a ratio says, and what is left out."""

from __future__ import annotations

import pytest

from benchmarks.peers.rows import Row
from benchmarks.peers.run import chosen
from benchmarks.peers.table import Taken, lines, ratio, table

LESS = Row("submit_command", "ms", "one command")
MORE = Row("submit_rate_4", "jobs/s", "four loops", more=True)
FLOORS = [{"spawn": 0.5, "python": 8.0, "sync": 0.2}] * 3


def taken(*values: float) -> Taken:
    return Taken(list(values), FLOORS[: len(values)], "how", "1.0")


def test_a_ratio_above_one_means_that_lava_is_ahead() -> None:
    assert ratio(LESS, [5.0], [10.0]) == 2.0
    assert ratio(MORE, [5.0], [10.0]) == 0.5


def test_a_ratio_is_of_values_of_the_same_round() -> None:
    """The second round was slow for both: what each took in it says nothing about who is ahead."""
    assert ratio(LESS, [4.0, 40.0, 4.0], [8.0, 80.0, 2.0]) == 2.0


def test_each_contender_has_a_line_with_its_floors() -> None:
    ours, theirs = lines(LESS, {"lava": taken(4.0, 5.0, 6.0), "slurm": taken(8.0, 10.0, 12.0)})
    assert (ours["metric"], ours["value"], "ratio" in ours) == ("beside_submit_command_lava", 5.0, False)
    assert (theirs["metric"], theirs["value"], theirs["ratio"]) == ("beside_submit_command_slurm", 10.0, 2.0)
    assert theirs["floors"] == {"spawn": 0.5, "python": 8.0, "sync": 0.2}


def test_a_round_without_a_value_has_no_ratio() -> None:
    """The memory of a few jobs may be nothing that can be seen."""
    assert ratio(LESS, [0.0, 5.0], [10.0, 10.0]) == 2.0
    assert ratio(LESS, [0.0], [10.0]) is None


def test_without_lava_there_is_no_ratio() -> None:
    (alone,) = lines(LESS, {"slurm": taken(8.0)})
    assert "ratio" not in alone


def test_the_table_has_a_column_for_each_contender_and_leaves_out_what_it_cannot_do() -> None:
    found = lines(LESS, {"lava": taken(4.0), "slurm": taken(8.0)}) + lines(MORE, {"lava": taken(1234.0), "hq": taken(2468.0)})
    rows = [text.split() for text in table(found).splitlines()]
    assert rows[0] == ["unit", "lava", "slurm", "hq"]
    assert rows[1] == ["submit_command", "ms", "4", "8", "(x", "2)", "-"]
    assert rows[2] == ["submit_rate_4", "jobs/s", "1,234", "-", "2,468", "(x", "0.5)"]


def test_rows_that_need_pending_jobs_bring_the_row_that_makes_them() -> None:
    assert chosen(["query_one_10000"]) == {"query_one_10000", "memory_pending"}
    assert chosen(["ONLY=turnaround"]) == {"turnaround"}
    assert len(chosen([""])) == len(chosen([])) > 10
    with pytest.raises(SystemExit, match="no row is called nothing"):
        chosen(["nothing"])
