"""The hint behind a refusal: which option was meant."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from cli import lava
from cli.client.context import Context, Fail, finish
from cli.client.hints import hint


@pytest.mark.parametrize(
    ("words", "said", "expected"),
    [
        (["-gpuu", "x"], "bsub: illegal option -- gpuu\n. Job not submitted.\n", "Did you mean -gpu?\n"),
        (["-noheadr"], "bjobs: invalid option -- 'n'\nUsage: bjobs\n", "Did you mean -noheader?\n"),
        (["-Q"], "bjobs: invalid option -- 'Q'\n", "Did you mean -q?\n"),
        (["-usr", "ann"], "lava report: invalid option -- 'u'\n", "Did you mean --user?\n"),
        (["-gpuu"], "lava run: illegal option -- gpuu\n", "Did you mean -gpu?\n"),
        (["-gpuu"], "lava jupyter: illegal option -- gpuu\n", "Did you mean -gpu?\n"),
        (["-Kk"], "lava jupyter: illegal option -- Kk\n", "Did you mean -k?\n"),
        (["-Q"], "badmin hclose: invalid option -- 'Q'\n", "badmin hclose -h shows the options\n"),
        (["reconfg"], "Invalid command <reconfg> \nUsage: badmin [-h]", "Did you mean reconfig or ckconfig?\n"),
        (["showcnf"], "Invalid command <showcnf> \nUsage: lsadmin [-h]", "Did you mean showconf?\n"),
        (["-9"], "bgdel: invalid option -- '9'\n", "bgdel -h shows the options\n"),
        ([], "User permission denied\n", ""),
        ([], "nope: No such application profile\n", "bapp shows them\n"),
    ],
)
def test_what_was_meant(words: list[str], said: str, expected: str) -> None:
    assert hint(Context(words), said) == expected


def test_programs_read_no_hint(capfd: pytest.CaptureFixture[str]) -> None:
    def run(context: Context) -> int:
        raise Fail("bjobs: invalid option -- 'Q'")

    assert finish(run, Context([])) == 255
    assert capfd.readouterr().err == "bjobs: invalid option -- 'Q'\n"


def test_a_master_that_has_gone_away_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def waited(seconds: float) -> None:
        raise AssertionError("waited")

    monkeypatch.setattr(time, "sleep", waited)
    away = Context(["-q", "nosuch"], environ={"LAVA_SOCKET": str(tmp_path / "s")})
    assert hint(away, "nosuch: No such queue. Job not submitted.\n") == ""
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["statsu"], "Did you mean stats or status?\n"),
        (["up", "--gpuz", "3"], "Did you mean --gpus?\n"),
        (["up", "--hosts", "x"], ""),
    ],
)
def test_what_was_meant_of_lava(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lava.main(words) == 255
    assert "Did you mean" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert lava.main(words) == 255
    said = capsys.readouterr().err
    assert said[said.rindex("\n", 0, -1) + 1 :] == expected if expected else "Did you mean" not in said


@pytest.mark.parametrize("name", ["man", "secret", "completion"])
def test_help_of_small_subcommands_does_nothing_else(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in ("-h", "--help"):
        assert lava.main([name, word]) == 0
        assert capsys.readouterr().out.startswith(f"Usage: lava {name} ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "first"),
    [
        (["help"], 0, "usage: lava [-h] [-V] up | "),
        (["help", "why"], 255, "Usage: lava why "),
        (["help", "up"], 0, "usage: lava up [-h] "),
        (["help", "nothing"], 255, "usage: lava [-h] [-V] up | "),
    ],
)
def test_help_is_a_word_too(words: list[str], code: int, first: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert lava.main(words) == code
    said = capfd.readouterr()
    assert (said.err if code else said.out).startswith(first)
