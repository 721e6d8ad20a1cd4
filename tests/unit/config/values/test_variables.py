"""ENV_VARS: variables of the jobs of an application profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.read.load import load
from config.values.values import Scope
from config.values.variables import env_vars, show_env_vars


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("FRUIT='apple',CAR='civic'", {"FRUIT": "apple", "CAR": "civic"}),
        ("FRUIT='apple' , CAR='honda civic'", {"FRUIT": "apple", "CAR": "honda civic"}),
        ("CAR=''", {"CAR": ""}),
        ("CAR=", {"CAR": ""}),
        ("CAR=civic,N=4", {"CAR": "civic", "N": "4"}),
        ("A='1',B='2',A='3'", {"A": "3", "B": "2"}),
        ("PATH='$HOME/bin:a=b'", {"PATH": "$HOME/bin:a=b"}),
        ("A='1',", {"A": "1"}),
    ],
)
def test_names_and_values(value: str, found: dict[str, str]) -> None:
    assert dict(env_vars(value, Scope())) == found


@pytest.mark.parametrize("value", ["A", "='1'", "1A='1'", "A-B='1'", "A='1' B='2'", "A='1", "A=1 2", "A='a\"b'", ",A='1'"])
def test_what_is_none(value: str) -> None:
    with pytest.raises(ValueError, match="is not NAME='value'"):
        env_vars(value, Scope())


def test_a_profile_has_them_and_shows_them_as_written(tmp_path: Path) -> None:
    lines = "Begin Application\nNAME = a\nENV_VARS = \"A='x y',B='#'\"\nEnd Application\n"
    (tmp_path / "lsb.applications").write_text(lines)
    loaded = load(str(tmp_path))
    assert not loaded.problems
    [app] = loaded.config.applications
    assert app.env_vars == (("A", "x y"), ("B", "#"))
    assert show_env_vars(app.env_vars) == "A='x y',B='#'"
