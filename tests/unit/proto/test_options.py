"""The table of options is whole: no name, variable, key or element stands for two things by accident."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter

import pytest

from proto.commands import COMMANDS
from proto.options import BY_NAME, FLAG, IF_ALLOWED, OPTIONS, VALUES, find_reset


def test_each_option_stands_once() -> None:
    assert [name for name, times in Counter(option.name for option in OPTIONS).items() if times > 1] == []


@pytest.mark.parametrize("column", ["json", "jsdl", "jsdl_lsf"])
def test_a_key_names_one_option(column: str) -> None:
    keys = Counter(key for option in OPTIONS for key in getattr(option, column).split())
    assert [key for key, times in keys.items() if times > 1] == []
    assert not keys.keys() & BY_NAME.keys() - {"checkpoint"}


def test_only_rivals_share_a_variable_of_esubs() -> None:
    for variable, times in Counter(name for option in OPTIONS for name in option.esub.split()).items():
        names = {option.name for option in OPTIONS if variable in option.esub.split()}
        assert times == 1 or any(names == {option.name, option.rival} for option in OPTIONS), variable


def test_every_name_of_another_option_is_one() -> None:
    row = COMMANDS["brestart"]
    assert {*row.flags.split(), *row.valued.split()} <= BY_NAME.keys()
    for option in OPTIONS:
        assert {option.rival, option.same_as} <= BY_NAME.keys() | {""}
        assert not option.ignored or option.unsupported
        assert not (option.unsupported and option.fields)
        assert option.takes != VALUES or option.bmod == VALUES


@pytest.mark.parametrize(
    ("name", "resets"), [("Wn", "W"), ("rn", "r"), ("nn", "n"), ("Nn", "N"), ("We+n", None), ("n", None), ("x", None)]
)
def test_an_n_behind_an_option_resets_it(name: str, resets: str | None) -> None:
    found = find_reset(name)
    assert (found.name if found is not None else None) == resets


@pytest.mark.parametrize("name", ["rnn", "uln", "Wepn", "Zsn", "Zn", "Hn", "In", "extn", "envn"])
def test_what_has_no_reset(name: str) -> None:
    assert find_reset(name) is None


def test_a_running_job_keeps_its_name_but_may_get_another() -> None:
    assert (BY_NAME["J"].running, BY_NAME["J"].reset_running) == (IF_ALLOWED, "no")
    assert BY_NAME["Zs"].takes == FLAG


def test_the_table_is_quick_to_import() -> None:
    """The standard library's own start and this one module: a bsub waits for it."""
    code = "import sys; before = set(sys.modules); import proto.options; print(sorted(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-Sc", code], capture_output=True, text=True, check=True, timeout=60)
    assert "'proto.options'" in ran.stdout
    assert set(ast.literal_eval(ran.stdout)) <= {"__future__", "proto", "proto.options"}
