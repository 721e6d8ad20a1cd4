"""Parameters and options are explained by name, and a name that is like one is asked back."""

from __future__ import annotations

import pytest

from lavad.queries.explain.main import main
from lavad.queries.explain.names import parameters
from proto.commands import INSTALLED, OF_LAVA
from proto.help.lookup import rows


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        ("JOB_ACCEPT_INTERVAL", ["JOB_ACCEPT_INTERVAL (lsb.params)", "JOB_ACCEPT_INTERVAL (lsb.queues)"]),
        ("lsb.queues runlimit", ["RUNLIMIT (lsb.queues)", "  Value: [default] maximum, each [hours:]minutes[/host]"]),
        ("LAVA_HEARTBEAT", ["LAVA_HEARTBEAT (lsf.conf)", "  Value: seconds", "  Default: 10"]),
        ("MXJ", ["MXJ (lsb.hosts, Host)"]),
        ("-W", ["-W (bsub)", "  Value: [HOUR:]MINUTE[/HOST]"]),
        ("bjobs -o", ["-o (bjobs)"]),
        ("bsub -hostfile", ["-hostfile (bsub)"]),
        ("bjobs -hms", ["-hms (bjobs)"]),
        ("-h", ["  --names     print all names, for completion"]),
        ("lava report --by", ["--by (lava report)"]),
        ("RUNLIMIT", ["RUNLIMIT (lsb.queues)", "TERM_RUNLIMIT: job killed after reaching LSF run time limit"]),
    ],
)
def test_a_name_is_explained(asked: str, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(asked.split()) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in told] == []


def test_each_parameter_and_option_has_words() -> None:
    assert [one.name for one in parameters() if not one.means or not one.value] == []
    assert len(parameters()) > 300
    for command in (*INSTALLED, *(f"lava {name}" for name in OF_LAVA)):
        if command != "lava":
            rows(command)


@pytest.mark.parametrize(
    ("asked", "hint"), [("RUNLIMT", "did you mean RUNLIMIT"), ("xyzzyplugh", "docs/reasons.md"), ("--name", "nothing is known")]
)
def test_another_name_is_asked_back(asked: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([asked]) == 255
    assert hint in capsys.readouterr().err


def test_all_names_are_listed_for_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--names"]) == 0
    assert {"RUNLIMIT", "TERM_OWNER", "LAVA_TRACES"} <= {*capsys.readouterr().out.split()}
