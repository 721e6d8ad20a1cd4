"""LSB_DISABLE_RERUN_POST_EXEC, and attempts that were lost: which commands after a job run, asked of a real shell."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
from msgspec.structs import replace

from agent.core.part import Part
from agent.launch.build import Compiled
from agent.launch.outputs import OutputPaths
from agent.launch.prepost import apart, commands, rerun
from agent.launch.site import Site
from agent.parts import prepost
from agent.parts.entry import Entry
from agent.starter.part.task_start import only_hosts
from config.model.site_params import SiteParams
from proto import agent_pb2 as pb
from tests.unit.agent.launch.test_prepost_apart import ALICE, line, order
from tests.unit.agent.launch.test_prepost_apart import site as of_root
from tests.unit.agent.launch.test_prepost_apart import text as text_apart

AFTER = ("echo own", "echo queue", "echo host")
ALL = "site own queue host"


def site(disabled: bool) -> Site:
    return Site("h1", "/run/lava", "/spool", "/etc/lava", {}, SiteParams(lsb_disable_rerun_post_exec=disabled))


def ran(disabled: bool, status: int = 0, env: dict[str, str] | None = None, hosts: int = 1, **fields: Any) -> str:
    given_text: dict[str, Any] = {"leased": True, "host_post_exec": ["echo host"][:hosts]} | fields
    text = pb.JobText(**given_text)
    shell = commands.post_exec(rerun.after(text, "echo site", AFTER[: 2 + hosts], site(disabled)))
    assert shell is not None
    given = {**os.environ, "LSB_JOBEXIT_STAT": str(status), **(env or {})}
    done = subprocess.run(["/bin/sh", "-c", shell], check=False, capture_output=True, text=True, env=given)
    assert (done.returncode, done.stderr) == (0, "")
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("hosts", [0, 1])
@pytest.mark.parametrize(
    ("values", "status", "again"),
    [
        ("3 7", 3 << 8, True),
        ("3 7", 4 << 8, False),
        ("3 7", 0, False),
        ("143", 15, True),
        ("all ~9", 1 << 8, True),
        ("all ~9", 9 << 8, False),
        ("all ~9", 0, False),
        ("EXCLUDE(5)", 5 << 8, True),
        ("", 5 << 8, False),
        ("of another form", 5 << 8, False),
    ],
)
def test_after_an_exit_value_with_which_the_job_runs_again(values: str, status: int, again: bool, hosts: int) -> None:
    everything = " ".join(ALL.split()[: 3 + hosts])
    assert ran(False, status, hosts=hosts, requeue_exit_values=values) == everything
    assert ran(True, status, hosts=hosts, requeue_exit_values=values, leased=False) == everything
    found = ran(True, status, hosts=hosts, requeue_exit_values=values)
    assert found == (" ".join(("site", *["host"][:hosts])) if again else everything)


@pytest.mark.parametrize("disabled", [False, True])
def test_after_an_attempt_that_was_lost_those_of_hosts_alone(disabled: bool) -> None:
    assert ran(disabled, 9, only_hosts(True)) == "host"
    assert ran(disabled, 9, only_hosts(False)) == ALL


def test_a_site_without_it_has_the_commands_as_they_are() -> None:
    text = pb.JobText(leased=True, requeue_exit_values="3")
    assert rerun.after(text, "site", AFTER[:2], site(False)) == ("site", *AFTER[:2])


def test_as_another_user_those_of_hosts_alone() -> None:
    made = Compiled(text_apart(), ALICE, of_root())
    assert line(apart.after("u.post", order(), made, site(True), 0, hosts_only=True)) == "hostpost"


@pytest.mark.parametrize(
    ("again", "status", "found"), [(True, 0, True), (False, 3 << 8, True), (False, 0, False), (False, 9, False)]
)
def test_whether_a_part_runs_again(again: bool, status: int, found: bool) -> None:
    made = Compiled(text_apart(leased=True, requeue_exit_values="3"), ALICE, of_root())
    entry = Entry(replace(Part("u", 7, 2), again=again), order(), made, OutputPaths(), 0.0)
    assert prepost.runs_again(entry, site(True), status) is found
    assert not prepost.runs_again(entry, site(False), status)
