"""What lsf.cluster says of elims."""

from __future__ import annotations

from config.model.cluster import ElimRules

LINES = "Begin Parameters\nELIMARGS = -a b\nLSF_ELIM_BLOCKTIME = 12\nLSF_ELIM_DEBUG = y\nLSF_ELIM_RESTARTS = {}\nEnd Parameters\n"


def test_they_are_read_together(folder) -> None:
    loaded = folder(lsf__cluster__lava=LINES.format(3))
    assert loaded.config.elim == ElimRules(args=("-a", "b"), block_time=12, debug=True, restarts=3)
    assert not [problem for problem in loaded.problems if "ELIM" in problem.text]


def test_a_value_that_cannot_be_read_is_told_with_its_line(folder) -> None:
    loaded = folder(lsf__cluster__lava=LINES.format("often"))
    assert loaded.config.elim.restarts is None
    [told] = [problem for problem in loaded.problems if "LSF_ELIM_RESTARTS" in problem.text]
    assert (told.line, told.fatal) == (5, True)
