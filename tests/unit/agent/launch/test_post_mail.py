"""LSB_POSTEXEC_SEND_MAIL: the mail of what ran after a job, made by a real shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.launch.prepost import commands, post_mail
from agent.launch.site import Site
from proto import agent_pb2 as pb


@pytest.fixture
def site(tmp_path: Path) -> Site:
    mailer = tmp_path / "mailer"
    mailer.write_text(f"#!/bin/sh\n{{ echo $*; cat; }} >{tmp_path}/mail\n")
    mailer.chmod(0o755)
    return Site("h1", "/run/lava", "/spool", "/etc/lava", {"LSB_MAILPROG": str(mailer)}, root=True, own_user="root")


def text(**more: Any) -> pb.JobText:
    return pb.JobText(**{"user": "alice", "queue": "night", "cluster": "c1", "admins": ["root"], "post_mail": "al@x.org"} | more)


def run(line: str | None, folder: Path, index: int = 0) -> int:
    assert line is not None
    env = {**os.environ, "LSB_JOBID": "7", "LSB_JOBINDEX": str(index), "LSB_JOBNAME": "it's $(me)"}
    return subprocess.run(["/bin/sh", "-c", line], cwd=folder, check=False, capture_output=True, env=env).returncode


def test_it_tells_how_the_commands_ended_and_what_they_said(tmp_path: Path, site: Site) -> None:
    line = post_mail.post_exec(text(), ("echo cleaned up; echo but >&2; exit 3", ""), site)
    assert run(line, tmp_path) == 3
    words, head, *mail = (tmp_path / "mail").read_text().splitlines()
    assert (words, head) == ("-oi -FLSF -froot al@x.org", "To: al@x.org")
    assert mail == [
        "From: LSF <root>",
        "Subject: Job 7: post-execution of <it's $(me)> in cluster <c1> ended with 3",
        "",
        "The post-execution commands of job <7> of user <alice> in queue <night> ended on host <h1> with 3.",
        "The output (if any) follows:",
        "",
        "cleaned up",
        "but",
    ]


def test_an_element_has_its_index(tmp_path: Path, site: Site) -> None:
    assert run(post_mail.post_exec(text(), ("true", "echo of the queue"), site), tmp_path, 4) == 0
    mail = (tmp_path / "mail").read_text()
    assert "Subject: Job 7[4]: " in mail
    assert mail.endswith("\nof the queue\n")


@pytest.mark.parametrize(
    ("after", "more"),
    [(("true",), {"post_mail": ""}), (("", ""), {}), (("",), {"copies": ["a < b"], "from_host": "h1"})],
)
def test_there_is_none_where_nothing_ran_or_none_is_wanted(site: Site, after: tuple[str, ...], more: dict[str, Any]) -> None:
    one = text(**more)
    assert post_mail.post_exec(one, after, site) == commands.post_exec((commands.site_after(one, site), *after))


def test_a_host_without_a_mailer_sends_none(tmp_path: Path) -> None:
    site = Site("h1", "/run/lava", "/spool", "/etc/lava", {"LSB_MAILPROG": str(tmp_path / "none")})
    assert post_mail.post_exec(text(), ("true",), site) == "true"
