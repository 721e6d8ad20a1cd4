"""Jobs on real GPUs: what they see, what is measured of them beside the driver's own figures, and what they leave."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pynvml
import pytest

from tests.support.daemons.unit_groups import keeps
from tests.support.live.cluster import Cluster
from tests.support.live.nvidia import CUDA_USER, WAIT, number, smi
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(slots=4)
PROGRAM = " ".join(CUDA_USER)
CLOSE = 0.1
FOR_EVER = 1000
MB = 1500


def figure(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern} is not in\n{text}"
    return float(found[1])


def seen(cluster: Cluster, out: Path) -> str:
    """The UUID of the one GPU that the program sees, once it has its memory."""
    wait_until(lambda: out.exists() and "ready" in out.read_text(), WAIT, lambda: f"{out} to be ready\n{cluster.logs()}")
    (uuid,) = re.findall(r"^sees 1: (GPU-\S+)$", out.read_text(), re.MULTILINE)
    return str(uuid)


def used(uuid: str) -> float:
    """MB of a GPU's memory."""
    return next(number(row["memory.used"]) or 0.0 for row in smi("gpu", "uuid,memory.used") if row["uuid"] == uuid)


def spent() -> dict[str, float]:
    """J of each GPU since its driver was loaded."""
    pynvml.nvmlInit()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return {pynvml.nvmlDeviceGetUUID(one): pynvml.nvmlDeviceGetTotalEnergyConsumption(one) / 1000 for one in handles}
    finally:
        pynvml.nvmlShutdown()


def test_the_gpus_of_the_host_are_shown(cluster: Cluster) -> None:
    told = smi("gpu", "index,name,driver_version")
    for command in ("lshosts -gpu", "bhosts -gpu", "lsload -gpuload"):
        lines = cluster.run(command).stdout.splitlines()[1:]
        assert len(lines) == len(told), command
        for line, row in zip(lines, told, strict=True):
            assert row["name"].partition(" ")[2].replace(" ", "")[:4] in line, command
    assert {row["driver_version"] for row in told} == {cluster.run("lshosts -gpu").stdout.splitlines()[1].split()[3]}


def test_a_job_is_measured_as_the_driver_counts(cluster: Cluster, tmp_path: Path) -> None:
    out, begun, most = tmp_path / "out", spent(), 0.0
    job = cluster.submit(f"-o {out} -gpu num=1 {PROGRAM} {MB} 12")
    uuid = seen(cluster, out)
    until = time.monotonic() + WAIT
    while cluster.states(job) == ["RUN"] and time.monotonic() < until:
        most = max(most, used(uuid))
    assert cluster.wait_end(job) == ["DONE"]
    energy = spent()[uuid] - begun[uuid]
    text = cluster.run(f"bhist -l -gpu {job}").stdout
    assert figure(r"Max GPU Memory Used: (\d+) bytes", text) / (1 << 20) == pytest.approx(most, rel=CLOSE)
    assert figure(r"SM Utilization: Avg (\d+)%", text) > 60
    assert figure(r"Energy Consumed: (\d+) Joules", text) == pytest.approx(energy, rel=0.2)
    assert figure(r"GPU \d+ : +SM (\d+)%", out.read_text()) == figure(r"SM Utilization: Avg (\d+)%", text)


def test_what_two_jobs_on_one_gpu_use_is_told_apart(cluster: Cluster, tmp_path: Path) -> None:
    share = '-gpu "num=1:gmem=4G:j_exclusive=no:gpack=yes"'
    outs = [tmp_path / name for name in "ab"]
    jobs = [cluster.submit(f"-o {out} {share} {PROGRAM} {mb} {FOR_EVER}") for out, mb in zip(outs, (MB, 3 * MB), strict=True)]
    first, second = (seen(cluster, out) for out in outs)
    assert first == second

    def apart() -> bool:
        texts = [cluster.run(f"bjobs -l -gpu {job}").stdout for job in jobs]
        mine = [re.search(r"GPU Memory Used (\d+) bytes", text) for text in texts]
        told = sorted(number(row["used_memory"]) or 0.0 for row in smi("compute-apps", "pid,used_memory"))
        return all(mine) and [int(one[1]) >> 20 for one in mine if one] == pytest.approx(told, rel=CLOSE)

    wait_until(apart, WAIT, lambda: "\n".join(cluster.run(f"bjobs -l -gpu {job}").stdout for job in jobs))
    cluster.run(f"bkill {jobs[0]} {jobs[1]}")
    for job in jobs:
        cluster.wait_end(job)


def test_other_gpus_cannot_be_opened(cluster: Cluster, tmp_path: Path) -> None:
    """By a job without GPUs none, whatever it sets."""
    if not keeps((cluster.folder.log / "starter-host1.log").read_text(), "device files"):
        pytest.skip("no cgroup can limit device files here")
    tries = "for file in /dev/nvidia[0-9]*; do ( : <$file ) 2>/dev/null && echo $file opens; done; unset CUDA_VISIBLE_DEVICES"
    none, one = tmp_path / "none", tmp_path / "one"
    jobs = [cluster.submit(f"-o {out} {gpus} '{tries}; {PROGRAM} 1 1'") for out, gpus in ((none, ""), (one, "-gpu num=1"))]
    assert [cluster.wait_end(job, 60) for job in jobs] == [["EXIT"], ["DONE"]]
    opened = [re.findall(r"^/dev/nvidia\d+ opens$", out.read_text(), re.MULTILINE) for out in (none, one)]
    assert [len(files) for files in opened] == [0, 1]


def test_a_job_outlives_its_agent_and_leaves_nothing_when_it_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = {row["uuid"]: number(row["memory.used"]) or 0.0 for row in smi("gpu", "uuid,memory.used")}
    job = cluster.submit(f"-o {out} -gpu num=1 {PROGRAM} {MB} {FOR_EVER}")
    uuid = seen(cluster, out)
    cluster.kill("agent-host1")
    cluster.up()
    text = lambda: cluster.run(f"bjobs -l -gpu {job}").stdout  # noqa: E731
    wait_until(lambda: re.search(r"Total Execution Time: \d\d+ seconds", text()), WAIT, text)
    assert cluster.states(job) == ["RUN"]
    assert figure(r"SM Utilization: Avg (\d+)%", text()) > 60
    cluster.run(f"bkill {job}")
    assert cluster.wait_end(job) == ["EXIT"]
    wait_until(lambda: used(uuid) <= before[uuid] + MB / 10, WAIT, lambda: f"{used(uuid)} MB to be free")
    assert not smi("compute-apps", "pid")
    assert cluster.run("bhosts -noheader -o status host1").stdout.split() == ["ok"]
