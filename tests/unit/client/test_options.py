"""What a submission asks for, by plain names."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lava_client.errors import Refused, Unavailable
from lava_client.options import command_line, options_of, submission
from lava_client.site import find_sockets, read_conf


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"slots": 4, "queue": "night", "held": True, "rerunnable": False, "memory": None}, {"n": "4", "q": "night", "H": True}),
        ({"resreq": ["select[a]", "span[hosts=1]"], "We": "1:30"}, {"R": ["select[a]", "span[hosts=1]"], "We": "1:30"}),
        ({"run_limit": timedelta(minutes=90, seconds=1)}, {"W": "1:31"}),
        ({"run_limit": timedelta(0)}, {"W": "0:01"}),
        ({"ranks": 8, "launch": "esub_a"}, {"n": "8", "a": ["esub_a", "mpi"]}),
        ({"launch": ["a", "b"]}, {"a": ["a", "b"]}),
        ({"gpus": 2}, {"gpu": "num=2"}),
        ({"gpus": 0, "gpu": "num=1:mode=shared"}, {"gpu": "num=1:mode=shared"}),
    ],
)
def test_plain_names_stand_for_the_options_of_bsub(given: dict[str, object], asked: dict[str, object]) -> None:
    assert options_of(given) == asked


def test_words_are_passed_as_they_are() -> None:
    assert command_line("a | b") == "a | b"
    assert command_line(["echo", "a b", "$HOME;'"]) == """echo 'a b' '$HOME;'"'"''"""


@pytest.mark.parametrize("command", [5, None, b"true", ["sleep", 5], [b"true"]])
def test_what_is_no_command_is_said_so(command: Any) -> None:
    with pytest.raises(TypeError, match="a command is a string, or a list of strings and paths, not "):
        command_line(command)


def test_a_job_gets_the_environment_as_far_as_it_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"A": "1", "BAD": "\udcff", "LSB_DEFAULTQUEUE": "night", "HOME": "/home/me", "LSB_DEFAULTPROJECT": "p"}
    frame = submission("true", {"P": "mine"}, environ, None, {"A": "2"})
    assert "BAD" not in frame["env"]
    assert (frame["env"]["A"], frame["options"], frame["cwd"]) == ("2", {"q": "night", "P": "mine"}, str(tmp_path))
    old = os.umask(0o027)
    try:
        assert submission("true", {}, environ, None)["umask"] == 0o027
    finally:
        os.umask(old)
    with pytest.raises(Refused, match="The command holds bytes that are not UTF-8"):
        submission("\udcff", {}, environ, None)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(Refused, match="working directory no longer exists"):
        submission("true", {}, environ, None)


def test_lsf_conf_says_where_the_daemons_are(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "lsf.conf").write_text(
        f'# LAVA_RUNDIR=/no\nexport A = "b # c"  # d\nB=x#y # z\nC=one\\\ntwo\nbad line\nLAVA_RUNDIR={run}\n'
    )
    conf = read_conf({"LSF_ENVDIR": str(tmp_path)})
    assert conf == {"A": "b # c", "B": "x#y", "C": "onetwo", "LAVA_RUNDIR": str(run)}
    for name in ("agent-a.sock", "lavad-2.sock", "lavad.sock", "other.sock", "lavad.pid"):
        (run / name).touch()
    assert [Path(path).name for path in find_sockets({}, conf)] == ["lavad.sock", "lavad-2.sock", "agent-a.sock"]
    assert find_sockets({"LAVA_SOCKET": "/s"}, conf) == ["/s"]
    assert read_conf({"LAVA_SOCKET": "/s", "LSF_ENVDIR": str(run)}) == {}
    with pytest.raises(Unavailable, match=r"no cluster: .*/run/lsf\.conf: No such file"):
        read_conf({"LSF_ENVDIR": str(run)})
