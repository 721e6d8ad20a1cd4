"""The shell command that is made of bsub's words."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.submit.script import command_line, single_quoted
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["sleep", "5"], "sleep 5"),
        (["sleep 1; exit 5"], "sleep 1; exit 5"),
        (["echo", "(a)", '"b c"', "$HOME", "x  y"], "echo \\(a\\) '\"b c\"' '$HOME' \"x  y\""),
        (["echo", "it's"], "echo it\\'s"),
        (["echo", "a$HOME"], "echo a$HOME"),
        (["echo", "a $HOME"], "echo 'a $HOME'"),
        (["ls", ">", "out", ";", "true"], "ls > out ; true"),
        (["echo", ""], 'echo ""'),
        (["echo", 'say "x"'], "echo 'say \"x\"'"),
        (["echo", "C:\\x"], "echo C:\\\\x"),
    ],
)
def test_words_are_quoted_as_lsf_does(words, command):
    assert command_line(words) == command


@given(st.lists(st.text(alphabet="ab ()'\"\\\t\n", max_size=8), max_size=5))
def test_the_shell_sees_the_words_again(words: list[str]):
    assert shlex.split(command_line(["cmd", *words])) == ["cmd", *words]


QUOTED = st.text(alphabet="a '\"\\`$(", min_size=1, max_size=6).filter(lambda word: word[0] == "$" or " " in word)


@settings(max_examples=examples(15))
@given(st.lists(st.text(alphabet="a '\"\\`$(", min_size=1, max_size=6).filter(lambda w: w[0] == "$" or " " in w), max_size=3))
def test_a_real_shell_sees_the_words_again(words: list[str]):
    command = command_line(["printf", "%s\\0", *words])
    command = command.replace("%s\\\\0", "'%s\\0'", 1)
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == (words or [""])


@given(st.text(alphabet="ab'\"$ \\", max_size=10))
def test_single_quotes_keep_everything(word: str):
    assert shlex.split(single_quoted(word)) == [word]
