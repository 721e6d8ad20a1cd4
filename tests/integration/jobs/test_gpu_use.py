"""The GPU use of a job of known use is measured within 5 %, over a kill of the agent and a requeue, and shown and summed."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(options=("--gpus", "2"))
PROGRAM = "CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES%%,*} LAVA_SIM_GPU_MB=1000 LAVA_SIM_GPU_UTIL=60 sleep"
"""Uses the first of its GPUs."""


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in\n{text}"
    return float(found[1])


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> int:
    """A job that was requeued and, while it ran again, lost its agent for a time."""
    key = cluster.submit(f"-r -P quantum -o {cluster.folder.path}/out -gpu num=2:mode=shared '{PROGRAM} 10'")
    live = "SM Utilization: Avg 60%, Max 60%, Min 60%\n"
    held = re.compile(r"Total Execution Time: [1-9]\d* seconds\n")
    wait_until(lambda: held.search(cluster.run(f"bjobs -l -gpu {key}", ok=False).stdout), 30, "a second of its first attempt")
    cluster.run(f"brequeue {key}")
    wait_until(lambda: "GPUs of earlier attempts" in cluster.run(f"bjobs -l -gpu {key}").stdout, 30, "its second attempt")
    wait_until(lambda: live in cluster.run(f"bjobs -l -gpu {key}").stdout, 30, "a sample of its GPU")
    cluster.kill("agent-host1")
    cluster.up()
    assert cluster.wait_end(key) == ["DONE"]
    return key


def test_the_record_of_the_job(cluster: Cluster, job: int) -> None:
    for command in ("bhist", "bacct"):
        text = cluster.run(f"{command} -l -gpu {job}").stdout
        first, second = re.split(r"GPU ID: \d", text)[1:]
        seconds = number(r"Total Execution Time: (\d+) s", first)
        assert seconds >= 10
        assert "SM Utilization: Avg 60%, Max 60%, Min 60%\n" in first
        assert "Max GPU Memory Used: 1048576000 bytes\n" in first
        assert number(r"Energy Consumed: (\d+) J", first) == pytest.approx(448 * seconds, rel=0.15), (
            "the power of a simulated GPU at 60 %"
        )
        assert "SM Utilization: Avg 0%, Max 0%, Min 0%\n" in second
        assert number(r"Idle Time: (\d+) s", second) == seconds
        assert number(r"earlier attempts: (\d+) GPU seconds held", text) > 0
    report = (cluster.folder.path / "out").read_text()
    assert re.search(r"GPU \d : +SM 60% \(max\. 60%\), idle 0%, memory max\. 1000 MB, \d+ J, \d+ sec\.\n", report), report


def test_the_sums_of_bacct_and_of_the_report_are_equal(cluster: Cluster, job: int) -> None:
    cluster.wait_end(cluster.submit("-P other true"))
    bacct = cluster.run("bacct -P quantum").stdout
    held, used = number(r"Total GPU time held: +(\d+)", bacct), number(r"Total GPU time used: +(\d+)", bacct)
    before = number(r"earlier attempts: (\d+) GPU", cluster.run(f"bhist -l -gpu {job}").stdout)
    assert 20 + before <= held <= 26 + before
    assert used == pytest.approx(0.6 * held / 2, rel=0.1)
    rows = {(row["by"], row["name"]): row for row in csv.DictReader(io.StringIO(cluster.run("lava report --csv").stdout))}
    assert set(rows) >= {("project", "quantum"), ("project", "other"), ("queue", "normal")}
    quantum = rows["project", "quantum"]
    assert float(quantum["gpu_hours"]) * 3600 == pytest.approx(held, abs=1)
    assert float(quantum["gpu_used_hours"]) * 3600 == pytest.approx(used, abs=1)
    assert (rows["project", "other"]["gpu_jobs"], rows["project", "other"]["gpu_hours"]) == ("0", "0.0000")
    assert rows["queue", "normal"]["jobs"] == "2"
    text = cluster.run("lava report --by project --from 2020/1/1 --project=quantum").stdout
    assert re.search(r"\nPROJECT +JOBS .*\nquantum +1 .*\nTOTAL +1 ", text), text


def test_what_is_wrong(cluster: Cluster) -> None:
    for words, said in (
        ("--by colour", "lava report: --by colour: must be user, project, queue, group or site\n"),
        ("--queue nosuch", "nosuch: No such queue\n"),
        ("--from x", "x: Bad time specification\n"),
        ("word", "lava report: word: no such argument\n"),
    ):
        done = cluster.run(f"lava report {words}", ok=False)
        assert (done.returncode, done.stdout, done.stderr) == (255, "", said)


def test_the_gpus_of_a_job_as_a_field(cluster: Cluster, job: int) -> None:
    records = json.loads(cluster.run(f"bjobs -o 'jobid gpu_num' -json {job}").stdout)["RECORDS"]
    assert records == [{"JOBID": str(job), "GPU_NUM": "2"}]
