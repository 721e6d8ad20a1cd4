"""bsub -jsdl: what a job description gives, and what it may not hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.client.context import Fail
from cli.submit.jsdl import read_jsdl
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import ScriptedMaster

JOB = """<?xml version="1.0" encoding="UTF-8"?>
<jsdl:JobDefinition xmlns:jsdl="http://schemas.ggf.org/jsdl/2005/11/jsdl"
    xmlns:posix="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix" xmlns:lsf="http://www.platform.com/jsdl-lsf">
  <jsdl:JobDescription>
    <!-- who -->
    <jsdl:JobIdentification><jsdl:JobName>mine</jsdl:JobName><jsdl:JobProject>risk</jsdl:JobProject></jsdl:JobIdentification>
    <jsdl:Application>
      <posix:POSIXApplication>
        <posix:Executable>/bin/echo</posix:Executable><posix:Argument>a b</posix:Argument><posix:Argument>c</posix:Argument>
        <posix:Output>out.%%J</posix:Output><posix:Environment name="A">x, y</posix:Environment>
        <posix:WallTimeLimit>90</posix:WallTimeLimit><posix:MemoryLimit>1048577</posix:MemoryLimit>
      </posix:POSIXApplication>
    </jsdl:Application>
    <jsdl:Resources>
      <jsdl:CandidateHosts><jsdl:HostName>h1</jsdl:HostName><jsdl:HostName>h2</jsdl:HostName></jsdl:CandidateHosts>
      <jsdl:ExclusiveExecution>true</jsdl:ExclusiveExecution>
      <jsdl:TotalCPUCount><jsdl:LowerBoundedRange>2.0</jsdl:LowerBoundedRange>
        <jsdl:UpperBoundedRange>4</jsdl:UpperBoundedRange></jsdl:TotalCPUCount>
    </jsdl:Resources>
    %s
  </jsdl:JobDescription>
</jsdl:JobDefinition>
"""
OWN = "<lsf:Queue>night</lsf:Queue><lsf:Rerunnable>true</lsf:Rerunnable>"


def test_a_job_is_submitted_as_it_is_described(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "job.jsdl").write_text(JOB % OWN)
    with ScriptedMaster(caller.socket, [{"ok": {"job": 7, "queue": "night"}}]) as master:
        ran = caller.run("bsub", "-jsdl", "job.jsdl", "-J", "other", B="1")
    assert ran.status == 0, ran.err
    (ask,) = master.asks
    assert ask["command"] == '/bin/echo "a b" c'
    assert ask["options"] == {
        "J": "other",
        "P": "risk",
        "o": "out.%J",
        "W": "2",
        "M": "1025KB",
        "m": "h1 h2",
        "x": True,
        "n": "2,4",
        "q": "night",
        "r": True,
    }
    assert (ask["env"]["A"], ask["env"]["B"]) == ("x, y", "1")


@pytest.mark.parametrize(("value", "wanted"), [("it's", "it's"), ('say "yes"', 'say "yes"'), ("", ""), ("""'"'""", None)])
def test_variables_keep_their_quotes(value: str, wanted: str | None, caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "job.jsdl").write_text(JOB.replace(">x, y<", f">{value}<") % "")
    with ScriptedMaster(caller.socket, [{"ok": {"job": 7, "queue": "night"}}]) as master:
        ran = caller.run("bsub", "-jsdl", "job.jsdl")
    if wanted is None:
        assert "<Environment>: A cannot be given" in ran.err
    else:
        assert [ask["env"]["A"] for ask in master.asks] == [wanted]


@pytest.mark.parametrize(
    ("text", "strict", "said"),
    [
        (JOB % OWN, True, "<Queue> is an extension (-jsdl_strict)"),
        (JOB % "<jsdl:DataStaging/>", False, "<DataStaging> is not supported by lava"),
        (JOB % "<posix:WallTimeLimit>soon</posix:WallTimeLimit>", False, "<WallTimeLimit>: soon: not a number"),
        (JOB % "<jsdl:TotalCPUCount/>", False, "<TotalCPUCount>: it has no number"),
        ("<a/>", False, "<a>: a job description begins with JobDefinition"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", False, "a job description has no document type and no entities"),
        ("{", False, "no XML: not well-formed (invalid token): line 1, column 0"),
    ],
)
def test_what_cannot_be_followed_is_named(text: str, strict: bool, said: str) -> None:
    with pytest.raises(Fail) as failed:
        read_jsdl("f", text, strict)
    assert failed.value.text == f"f: {said}"


@given(st.text(max_size=80) | st.text(alphabet="<>/&!abJobDefinition \"='", max_size=80))
def test_any_text_is_taken_or_refused(text: str) -> None:
    with pytest.raises(Fail):
        read_jsdl("f", text, strict=False)
