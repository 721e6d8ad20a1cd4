"""Jobs that are changed while they run, warned before their run limit, and restarted from a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    made = Cluster(tmp_path_factory.mktemp("changing"), hosts=1, slots=4)
    with made:
        conf = next(Path(made.folder.path).rglob("lsf.conf"))
        with conf.open("a") as file:
            file.write("LSB_MOD_ALL_JOBS=Y\n")
        made.run("badmin reconfig")
        yield made


def test_a_new_run_limit_ends_a_job_that_has_run_longer(cluster: Cluster) -> None:
    job = cluster.submit("-o out1 sleep 600")
    cluster.wait_for(job, "RUN")
    assert cluster.run(f"bmod -W 5 -J other {job}").stdout == f"Parameters of job <{job}> are being changed\n"
    assert "RUNLIMIT" in cluster.run(f"bjobs -l {job}").stdout
    assert cluster.run(f"bjobs -noheader -o job_name {job}").stdout.strip() == "other"
    refused = cluster.run(f"bmod -q normal {job}", ok=False)
    text = "Job parameters cannot be changed now; non-repetitive job is running. Job not modified.\n"
    assert (refused.returncode, refused.stderr) == (255, text)
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)


@pytest.mark.parametrize("action", ["URG", "command"])
def test_a_job_is_warned_before_its_run_limit(cluster: Cluster, action: str) -> None:
    seen = cluster.folder.path / f"warned.{action}"
    script = cluster.folder.path / "warn.sh"
    script.write_text(f"#!/bin/sh\necho $LSB_JOBID > {seen}\n")
    script.chmod(0o755)
    what = "URG" if action == "URG" else str(script)
    program = f"trap \"echo \\$LSB_JOBID > {seen}\" URG; while :; do sleep 0.1; done"
    job = cluster.submit(f"-W 1 -wt 1 -wa {what} -o out2 '{program}'")
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
    (folder / str(job) / "gen-3" / "MANIFEST").touch()
    done = cluster.run(f"brestart {folder} {job}").stdout
    again = int(done.split("<")[1].split(">")[0])
    assert cluster.wait_end(again) == ["DONE"]
    assert (cluster.folder.path / f"out.{again}").read_text().splitlines()[0] == "Y 3 gen-3"
