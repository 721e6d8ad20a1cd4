"""lsf.conf: quotes, comments, continuations, the environment, and what the commands pay for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.lsfconf import find_envdir, parse_lsf_conf, read_lsf_conf, value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A=1", {"A": "1"}),
        ("A = 1 ", {"A": "1"}),
        ('A="x y"  # why', {"A": "x y"}),
        ("A='x # y'", {"A": "x # y"}),
        ("A=x#y", {"A": "x#y"}),
        ("A=x # y", {"A": "x"}),
        ("# A=1\n\n  #B=2\nC=3\r\n", {"C": "3"}),
        ('A="h1 \\\nh2"\nB=2', {"A": "h1 h2", "B": "2"}),
        ("export A=1", {"A": "1"}),
        ("A=1\nA=2", {"A": "2"}),
        ("A=", {"A": ""}),
        ("A=it's", {"A": "it's"}),
        ("A=a=b", {"A": "a=b"}),
        ("junk\n1A=2\nA-B=3\nD=4\\", {"D": "4"}),
        ("A=\\\n# not a comment", {"A": ""}),
    ],
)
def test_lines_of_lsf_conf(text, expected, tmp_path):
    path = tmp_path / "lsf.conf"
    path.write_text(text)
    assert read_lsf_conf(str(path)) == expected


def test_lines_that_are_none_are_named_by_number():
    assert parse_lsf_conf("A=1\njunk\nB=2\n=3")[1] == [2, 4]


def test_a_missing_file_is_empty(tmp_path):
    assert read_lsf_conf(str(tmp_path / "lsf.conf")) == {}
    (tmp_path / "file").write_text("")
    assert read_lsf_conf(str(tmp_path / "file" / "lsf.conf")) == {}


def test_the_environment_goes_before_the_file():
    assert value({"A": "file"}, {"A": "env"}, "A", "default") == "env"
    assert value({"A": "file"}, {}, "A", "default") == "file"
    assert value({}, {}, "A", "default") == "default"


def test_the_folder_is_what_lsf_envdir_says():
    assert find_envdir({"LSF_ENVDIR": "/some/where"}) == "/some/where"
    assert find_envdir({}) in (None, "/etc/lava")


@given(st.text(max_size=300))
def test_any_text_is_read(text):
    entries, bad = parse_lsf_conf(text)
    assert len(entries) + len(bad) <= text.count("\n") + 1


def test_reading_it_imports_nothing():
    """A command pays for each module: lsfconf alone may bring none but itself and its package."""
    code = "import os, sys; before = set(sys.modules); import config.lsfconf; print(*sorted(set(sys.modules) - before))"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["config", "config.lsfconf"]
