"""bmod with blank values: a blank name or project is none, a blank command is refused."""

from __future__ import annotations

import pytest

from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod


def test_a_blank_value_of_a_name_or_project_is_none(bench: Bench) -> None:
    key = bench.bsub(J="a", P="p")["job"]
    bmod(bench, key, J=" ", P="")
    assert (bench.job(key).name, bench.cluster.spec_of(key).project) == ("old", "default")


def test_a_blank_command_is_refused(bench: Bench) -> None:
    key = bench.bsub()["job"]
    with pytest.raises(Refused, match="No command is specified"):
        bmod(bench, key, command=" ")
