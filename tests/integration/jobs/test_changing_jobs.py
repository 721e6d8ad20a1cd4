"""Jobs that are changed while they run, warned before their run limit, and restarted from a checkpoint."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


@pytest.fixture(scope="module", autouse=True)
def conf(cluster: Cluster) -> None:
    """Output is delivered when a job ends; all its parameters may be changed while it runs."""
    conf = cluster.folder.conf / "lsf.conf"
    conf.write_text(conf.read_text().replace("LSB_STDOUT_DIRECT=Y", "LSB_STDOUT_DIRECT=N") + "LSB_MOD_ALL_JOBS=Y\n")
    cluster.run("badmin reconfig")


def test_a_new_run_limit_ends_a_job_that_has_run_longer(cluster: Cluster) -> None:
    said = cluster.folder.path / "time-left"
    job = cluster.submit(f"-o out1 'lava time-left >{said}; echo $LAVA_TIME_LEFT_FILE >{said}.path; exec sleep 600'")
    named = Path(f"{said}.path")
    wait_until(lambda: named.exists() and named.read_text(), 30, lambda: cluster.logs())
    file = Path(named.read_text().strip())
    assert (said.read_text(), file.read_text()) == ("unlimited\n", "")
    assert cluster.run(f"bmod -W 5 -J other {job}").stdout == f"Parameters of job <{job}> are being changed\n"
    assert "RUNLIMIT" in cluster.run(f"bjobs -l {job}").stdout
    assert cluster.run(f"bjobs -noheader -o job_name {job}").stdout.strip() == "other"
    assert 200 < int(cluster.run(f"lava time-left {job}").stdout) <= 300
    end = int(wait_until(file.read_text, 30, "the job's file to say when it ends"))
    assert 200 < end - time.time() <= 301
    unknown = cluster.run("lava time-left 4711", ok=False)
    assert (unknown.returncode, unknown.stderr) == (255, "Job <4711> is not found or has finished\n")
    refused = cluster.run(f"bmod -q normal {job}", ok=False)
    text = "Job parameters cannot be changed now; non-repetitive job is running. Job not modified.\n"
    assert (refused.returncode, refused.stderr) == (255, text)
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
    wait_until(lambda: not file.exists(), 30, "its file to go with it")


def test_output_files_of_a_running_job_are_delivered_elsewhere(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = cluster.submit(f"-o old -e olderr 'echo words; echo err >&2; until [ -e {go} ]; do sleep 0.1; done'", cwd=tmp_path)
    cluster.wait_for(job, "RUN")
    cluster.run(f"bmod -oo new -e newerr -We+ 5 {job}", cwd=tmp_path)
    assert cluster.run(f"bjobs -noheader -o 'estimated_run_time' {job}").stdout.startswith("5.")
    go.touch()
    cluster.wait_end(job)
    new = tmp_path / "new"
    assert "words\n" in wait_until(lambda: new.read_text() if new.exists() else "", 30, "the new file")
    assert (tmp_path / "newerr").read_text() == "err\n"
    assert not (tmp_path / "old").exists()
    assert not (tmp_path / "olderr").exists()


@pytest.mark.parametrize("action", ["URG", "SIGWINCH", "CHKPNT", "command"])
def test_a_job_is_warned_before_its_run_limit(cluster: Cluster, action: str) -> None:
    seen = cluster.folder.path / f"warned.{action}"
    script = cluster.folder.path / "warn.sh"
    script.write_text(f"#!/bin/sh\necho $LSB_JOBID > {seen}\n")
    script.chmod(0o755)
    what, caught = (str(script), "URG") if action == "command" else (action, {"CHKPNT": "USR1"}.get(action, action[-5:]))
    ready = cluster.folder.path / f"ready.{action}"
    program = f'trap "echo \\$LSB_JOBID > {seen}" {caught}; touch {ready}; while :; do sleep 0.1; done'
    folder = f"-k {cluster.folder.path}/warned.ck" if action == "CHKPNT" else ""
    job = cluster.submit(f"-W 10 -wt 1 -wa {what} {folder} -o out2 '{program}'")
    wait_until(ready.exists, 20, "the job to listen")
    cluster.run(f"bmod -W 1 {job}")
    wait_until(lambda: seen.exists() and seen.read_text() == f"{job}\n", 20, lambda: f"the warning\n{cluster.logs()}")
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


def test_brestart_goes_on_from_the_checkpoint(cluster: Cluster) -> None:
    folder = cluster.folder.path / "ck"
    program = "echo $LSB_RESTART $LAVA_CKPT_GENERATION `ls $LSB_CHKPNT_DIR`"
    job = cluster.submit(f"-k {folder} -o out.%J '{program}'")
    cluster.wait_end(job)
    refused = cluster.run(f"brestart {folder} {job}", ok=False)
    assert refused.stderr == "Checkpoint log is not found or is corrupted. Job not submitted.\n"
    (folder / str(job) / "gen-3").mkdir()
    (folder / str(job) / "gen-3" / "MANIFEST").write_text('{"files": {}}')
    done = cluster.run(f"brestart {folder} {job}").stdout
    again = int(done.split("<")[1].split(">")[0])
    assert cluster.wait_end(again) == ["DONE"]
    assert "Y 3 gen-3" in (cluster.folder.path / f"out.{again}").read_text().splitlines()


def test_brestart_of_an_element_of_an_array(cluster: Cluster) -> None:
    folder = cluster.folder.path / "elements"
    job = cluster.submit(f"-J 'part[1-2]' -k {folder} -o part.%J.%I 'echo $LSB_JOBINDEX `ls $LSB_CHKPNT_DIR`'")
    cluster.wait_end(job)
    (folder / f"{job}.2" / "gen-5").mkdir()
    (folder / f"{job}.2" / "gen-5" / "MANIFEST").write_text('{"files": {}}')
    again = int(cluster.run(f"brestart {folder} '{job}[2]'").stdout.split("<")[1].split(">")[0])
    assert cluster.wait_end(again) == ["DONE"]
    assert "2 gen-5" in (cluster.folder.path / f"part.{again}.2").read_text().splitlines()
