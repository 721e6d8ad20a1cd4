"""bsub -f: what is copied when, run by a real shell; and between hosts by the site's command."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from agent.launch.prepost import commands as prepost
from agent.launch.site import Site
from agent.starter.part.task_start import ABORT, LATE
from proto import agent_pb2 as pb


def site(host: str = "h1", **conf: str) -> Site:
    return Site(host, "/run/lava", "/spool", "/etc/lava", conf, root=True, own_user="root")


def run(line: str, folder: Path) -> int:
    return subprocess.run(["/bin/sh", "-c", line], cwd=folder, check=False, capture_output=True).returncode


@pytest.mark.parametrize(
    ("operator", "here", "there"),
    [(">", "old", "old"), ("<", "made", "made"), ("<<", "made", "oldmade"), ("><", "made", "made"), ("<>", "made", "oldmade")],
)
def test_each_operator(tmp_path: Path, operator: str, here: str, there: str) -> None:
    (tmp_path / "my file").write_text("unseen")
    (tmp_path / "local").write_text("old")
    text = pb.JobText(cwd=str(tmp_path), from_host="h1", copies=[f"local {operator} remote"])
    assert run(prepost.copies_before(text, site()), tmp_path) == 0
    assert (tmp_path / "remote").exists() is (operator in (">", "><", "<>"))
    if operator != ">":
        (tmp_path / "remote").write_text("made")
    assert run(prepost.copies_after(text, site()), tmp_path) == 0
    assert ((tmp_path / "remote").read_text(), (tmp_path / "local").read_text()) == (here, there)


def test_a_job_with_a_working_folder_of_its_own_has_copies_there_of_files_where_it_was_submitted(tmp_path: Path) -> None:
    submitted, runs = tmp_path / "here", tmp_path / "here" / "run.7"
    runs.mkdir(parents=True)
    (submitted / "in").write_text("x")
    text = pb.JobText(cwd=f"{submitted}/run.%J", submit_cwd=str(submitted), from_host="h1", copies=["in >", "out < made"])
    assert run(prepost.copies_before(text, site()), runs) == 0
    assert (runs / "in").read_text() == "x"
    (runs / "made").write_text("y")
    assert run(prepost.copies_after(text, site()), runs) == 0
    assert (submitted / "out").read_text() == "y"


def test_one_file_is_no_copy_and_a_missing_one_ends_the_job(tmp_path: Path) -> None:
    (tmp_path / "same").write_text("x")
    text = pb.JobText(cwd=str(tmp_path), from_host="h1", copies=["same ><", "missing > x"])
    assert run(prepost.copies_before(text, site()), tmp_path) == ABORT
    assert (tmp_path / "same").read_text() == "x"


def test_a_file_that_cannot_be_copied_is_named_with_the_reason(tmp_path: Path) -> None:
    text = pb.JobText(cwd=str(tmp_path), from_host="h1", copies=["/etc/hostname > no/such/folder"])
    line = prepost.copies_before(text, site())
    with (tmp_path / "said").open("w+b", 0) as file:
        said = fcntl.fcntl(file, fcntl.F_DUPFD, 20)
        words = ["/bin/sh", "-c", line]
        done = subprocess.run(words, cwd=tmp_path, check=False, env={"LAVA_SAY": str(said)}, pass_fds=(said,))
        os.close(said)
    assert done.returncode == ABORT
    assert (
        (tmp_path / "said")
        .read_text()
        .startswith("-f /etc/hostname > no/such/folder: not copied: cp: cannot create regular file")
    )


def _said(line: str, folder: Path) -> tuple[int, str]:
    with (folder / "said").open("a+b", 0) as file:
        said = fcntl.fcntl(file, fcntl.F_DUPFD, 20)
        words = ["/bin/sh", "-c", line]
        done = subprocess.run(words, cwd=folder, check=False, env={**os.environ, "LAVA_SAY": str(said)}, pass_fds=(said,))
        os.close(said)
    return done.returncode, (folder / "said").read_text()


def test_a_file_that_cannot_be_copied_back_is_named_and_the_others_are_copied(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    text = pb.JobText(cwd=str(tmp_path), from_host="h1", copies=["back < missing", "log << missing", "copy < here"])
    code, said = _said(prepost.copies_after(text, site()), tmp_path)
    lines = said.splitlines()
    assert code
    assert [line.partition(": not copied: ")[0] for line in lines] == ["-f back < missing", "-f log << missing"]
    assert all("No such file" in line for line in lines)
    assert (tmp_path / "copy").read_text() == "x"


def test_what_is_appended_on_another_host_fails_where_the_copy_does(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("x")
    text = pb.JobText(cwd=str(tmp_path), from_host="login", copies=["log << out"])
    away = tmp_path / "away"
    away.write_text("#!/bin/sh\necho away >&2\nexit 1\n")
    away.chmod(0o755)
    code, said = _said(prepost.copies_after(text, site("h2", LSF_REMOTE_COPY_CMD=str(away))), tmp_path)
    assert (code, said) == (1, "-f log << out: not copied: away\n")


def test_a_copy_is_over_with_its_command_whatever_that_leaves_behind(tmp_path: Path) -> None:
    """ssh leaves the connection that it shares (ControlPersist), with the files that it was given."""
    text = pb.JobText(cwd=str(tmp_path), from_host="login", copies=["in >", "out <", "missing <"])
    held, leaves = tmp_path / "held", tmp_path / "leaves"
    os.mkfifo(held)
    leaves.write_text(f"#!/bin/sh\ncat {held} &\n[ $2 != login:{tmp_path}/missing ] || {{ echo away >&2; exit 1; }}\n")
    leaves.chmod(0o755)
    far = site("h2", LSF_REMOTE_COPY_CMD=str(leaves))
    assert _said(prepost.copies_before(text, far), tmp_path) == (0, "")
    assert _said(prepost.copies_after(text, far), tmp_path) == (1, "-f missing <: not copied: away\n")
    held.write_text("")  # all that were left behind end


def test_other_hosts_by_the_sites_command(tmp_path: Path) -> None:
    text = pb.JobText(cwd="/w", from_host="login", copies=["in > b c", "out <"])
    text.copies[:] = ["in > b", "out <"]
    far = site("h2", LSF_REMOTE_COPY_CMD="scp -B")
    assert "{ [ /w/in -ef ./b ] || scp -B login:/w/in ./b; }" in prepost.copies_before(text, far)
    assert "{ scp -B ./out login:/w/out; }" in prepost.copies_after(text, far)
    assert "scp" not in prepost.copies_before(text, site("login", LSF_REMOTE_COPY_CMD="scp -B"))


def test_what_takes_too_long_before_a_job_is_ended_and_says_so(tmp_path: Path) -> None:
    line = prepost.pre_exec(["sleep 60"], seconds=1)
    assert line is not None
    assert _said(line, tmp_path) == (LATE, "the pre-execution command was ended after 1 s (JOB_PREPROC_TIMEOUT)\n")


@pytest.mark.parametrize("code", [0, 3, ABORT])
def test_what_ends_in_time_before_a_job_has_its_own_exit_code(tmp_path: Path, code: int) -> None:
    line = prepost.pre_exec([f"exit {code}"], seconds=30)
    assert line is not None
    assert _said(line, tmp_path) == (code, "")
