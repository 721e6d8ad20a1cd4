"""What ``bsub -secret`` names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.lang.asks import Refused
from lavad.core.lang.secrets import read, without_secrets


def test_a_name_alone_is_the_kept_one_and_a_file_is_any_of_the_users() -> None:
    assert read("TOKEN KEY=/etc/key  MORE=~/more", "/home/ann", ".lava/secrets") == (
        ("TOKEN", "/home/ann/.lava/secrets/TOKEN"),
        ("KEY", "/etc/key"),
        ("MORE", "/home/ann/more"),
    )


@pytest.mark.parametrize("text", ["", "  ", "1A", "A-B", "A=key", "A=", "=x", "é", "A" * 200, "../x", "A=~bob/x"])
def test_what_is_no_name_or_file_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read(text, "/home/ann", ".lava/secrets")


@given(st.text())
def test_any_text_is_taken_or_refused(text: str) -> None:
    try:
        found = read(text, "/home/ann", ".lava/secrets")
    except Refused:
        return
    assert found
    assert all(path.startswith("/") and name.isascii() for name, path in found)


def test_the_submitters_own_value_is_not_kept() -> None:
    assert without_secrets({"A": "1", "B": "2"}, "A=~/x C") == {"B": "2"}
    assert without_secrets({"A": "1"}, None) == {"A": "1"}
