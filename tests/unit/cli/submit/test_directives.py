"""#BSUB lines."""

from __future__ import annotations

import contextlib
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.submit.directives import directive_lines, read_directives, words_of
from cli.submit.submit_options import bsub_table


def read(script: str):
    return read_directives(script, bsub_table())


def test_options_come_from_all_over_the_script():
    assert read("#!/bin/sh\n#BSUB -q a\necho\n#BSUB -n 4 -W 10\n#BSUB -q b\n") == {"q": "b", "n": "4", "W": "10"}


@pytest.mark.parametrize("line", [" #BSUB -q x", "\t#BSUB -q x", "##BSUB -q x", "# BSUB -q x", "#BSUBS -q x", "#bsub -q x"])
def test_a_directive_begins_its_line(line):
    assert read(f"#!/bin/sh\n{line}\n") == {}


def test_an_option_may_follow_the_mark_without_a_blank():
    assert read("#BSUB-J w[1-3]   # name\n#BSUB-n 2\n##BSUB-q x\n") == {"J": "w[1-3]", "n": "2"}


def test_a_comment_ends_the_options():
    assert read('#BSUB -R "select[type==any]"    # comment after\n') == {"R": ["select[type==any]"]}
    assert read("#BSUB # -q x\n#BSUB\n#BSUB -J a#b\n") == {"J": "a#b"}


def test_quotes_hold_words_together():
    assert read("#BSUB -R 'span[ptile=2]' -J \"a b\" -P p\\ q\n") == {"R": ["span[ptile=2]"], "J": "a b", "P": "p q"}


@pytest.mark.parametrize("second", ["#BSUB -n 4", "# -n 4", "  -n 4"])
def test_a_backslash_continues_the_line(second):
    assert read(f"#BSUB -q x \\\n{second}\n#BSUB -W 5\n") == {"q": "x", "n": "4", "W": "5"}


def test_dos_line_ends_are_no_part_of_a_value():
    assert read("#BSUB -q x\r\n#BSUB -n 2\r\n") == {"q": "x", "n": "2"}


def test_errors_name_their_line():
    with pytest.raises(Fail, match=r"^Line 2 of the script: a quote is not closed$"):
        read("#!/bin/sh\n#BSUB -J 'x\n")
    with pytest.raises(Fail, match=r"^Line 1 of the script: <stray> is not an option$"):
        read("#BSUB -q x stray\n")
    with pytest.raises(Fail, match=r"^bsub: option -datachk is not supported by lava: "):
        read("#BSUB -datachk\n")


@given(st.text(alphabet="ab '\"\\\t=[]-", max_size=30))
def test_words_are_split_as_a_shell_would(text: str):
    try:
        want = shlex.split(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"quotation"):
            words_of(text)
    else:
        assert words_of(text) == want


@given(st.text(max_size=200))
def test_any_script_gives_lines_or_a_clear_refusal(script: str):
    for number, text in directive_lines("#BSUB " + script):
        assert number >= 1
        assert "\n" not in text
    with contextlib.suppress(Fail):
        read("#BSUB " + script)
