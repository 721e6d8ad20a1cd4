"""A drained host: a checkpointable job goes on elsewhere, a rerunnable one begins again. A checkpoint folder that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

HEAT = Path(__file__).parents[3] / "examples" / "heat"
COUNTS = f"""
import sys, time
sys.path.insert(0, {str(HEAT)!r})
from appcheckpoint import AppCheckpoint
checkpoint = AppCheckpoint()
found = checkpoint.newest()
step = found.facts["step"] if found else 0
while True:
    with open("steps", "a") as steps:
        print(step, file=steps)
    if checkpoint.wanted():
        checkpoint.save("part", b"state", {{"step": step}})
    step += 1
    time.sleep(0.05)
"""
pytestmark = pytest.mark.cluster(hosts=2)


def story(cluster: Cluster, job: int) -> str:
    """bhist -l with its folded lines whole."""
    return cluster.run(f"bhist -l {job}").stdout.replace("\n                     ", "")


def test_jobs_leave_a_host_that_is_drained(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "count.py").write_text(COUNTS)
    steps, sleeper = tmp_path / "steps", tmp_path / "sleeper"
    counts = cluster.submit('-k "ck runlimit=requeue" -m "host1+2 host2" python count.py', cwd=tmp_path)
    reruns = cluster.submit("-r -m 'host1+2 host2' 'echo $LSB_HOSTS >> sleeper; sleep 600'", cwd=tmp_path)
    stays = cluster.submit("-m host1 sleep 600", cwd=tmp_path)
    (tmp_path / "file").write_text("")
    refused = cluster.submit("-k file true", cwd=tmp_path)
    wait_until(lambda: steps.exists() and sleeper.exists() and len(steps.read_text().splitlines()) > 5, 30, "the jobs to run")

    done = cluster.run("badmin hclose --migrate -C swap host1", cwd=tmp_path)
    assert done.stderr == "Close <host1> ...... done\nhost1: 2 jobs are migrated, 1 job runs on\n"
    wait_until(lambda: "host2" in sleeper.read_text(), 30, "the rerunnable job to run elsewhere")
    wait_until(lambda: "host2" in cluster.run(f"bjobs -noheader -o exec_host {counts}").stdout, 30, "the other one, too")
    made = len(steps.read_text().splitlines())
    wait_until(lambda: len(steps.read_text().splitlines()) > made + 2, 30, "it to get on")
    assert steps.read_text().splitlines().count("0") == 1, "it began once"
    assert cluster.states(stays) == ["RUN"]
    assert "Reason <host host1 is closed>" in story(cluster, reruns)

    assert cluster.wait_end(refused) == ["EXIT"]
    assert f"checkpoint folder {tmp_path}/file/{refused}: Not a directory" in story(cluster, refused)
    cluster.run(f"bkill {counts} {reruns} {stays}")
    cluster.run("badmin hopen host1")
