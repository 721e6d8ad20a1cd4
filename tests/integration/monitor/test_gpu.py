"""What the processes of a job use of GPUs, through the real pynvml over a simulated libnvidia-ml."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu.source import GpuSource, open_gpus
from agent.monitor.usage import UsageSampler
from tests.support.daemons.monitored import Shepherded
from tests.support.wait import wait_until

HOST = f"gpuhost-{os.getpid()}"
WAIT = 30.0


@pytest.fixture
def gpus() -> Iterator[GpuSource]:
    simgpu.install(simgpu.SimulatedDriver(8, HOST))
    source = open_gpus()
    assert source is not None
    yield source
    source.close()
    simgpu.uninstall()


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def env_of(mb: int, *indexes: int, **more: str) -> dict[str, str]:
    uuids = ",".join(simgpu.sim_uuid(HOST, index) for index in indexes)
    return {"CUDA_VISIBLE_DEVICES": uuids, "LAVA_SIM_GPU_MB": str(mb), "PATH": "/usr/bin:/bin", **more}


def test_memory_and_use_of_a_rank_are_seen(gpus: GpuSource, tmp_path: Path):
    """GPU memory and utilisation of each rank, by pid, through NVML."""
    with Shepherded(tmp_path) as part:
        first = part.start(["/bin/sleep", "1000"], env_of(3000, 1, LAVA_SIM_GPU_UTIL="70"))
        second = part.start(["/bin/sleep", "1000"], env_of(500, 2, 3))
        part.start(["/bin/sleep", "1000"], {})
        wait_until(lambda: len(gpus.processes()) == 3, WAIT, "both processes on their GPUs")
        seen = {(one.uuid, one.pid): (one.mem_mb, one.util_percent) for one in gpus.processes()}
        assert seen == {
            (simgpu.sim_uuid(HOST, 1), first): (3000, 70),
            (simgpu.sim_uuid(HOST, 2), second): (500, 50),
            (simgpu.sim_uuid(HOST, 3), second): (500, 50),
        }
        usage = UsageSampler(gpus).sample({"uid": part.roots()})["uid"]
        assert [(task.gpu_mem, task.gpu_util) for task in usage.tasks] == [(3000, 70), (1000, 100), (0, 0)]


def test_a_shell_around_a_program_uses_no_gpu_of_its_own(gpus: GpuSource, tmp_path: Path):
    with Shepherded(tmp_path) as part:
        pid = part.start(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], env_of(100, 0))
        (child,) = map(int, wait_until(part.said, WAIT, "the child"))
        part.strays.append(child)
        wait_until(lambda: [one.pid for one in gpus.processes()] == [child], WAIT, f"{child} alone, not {pid}")


def test_the_use_of_a_part_that_is_known_is_measured(gpus: GpuSource, tmp_path: Path):
    """Within 5 %: GPU 1 at 70 % for 100 s, GPU 2 shared with another part, GPU 4 idle; energy as the simulated power says."""
    now = Clock()
    cards = {index: simgpu.sim_uuid(HOST, index) for index in range(8)}
    (tmp_path / "other").mkdir()
    with Shepherded(tmp_path) as part, Shepherded(tmp_path / "other") as other:
        part.start(["/bin/sleep", "1000"], env_of(3000, 1, LAVA_SIM_GPU_UTIL="70"))
        part.start(["/bin/sleep", "1000"], env_of(500, 2, LAVA_SIM_GPU_UTIL="30"))
        other.start(["/bin/sleep", "1000"], env_of(700, 2, LAVA_SIM_GPU_UTIL="10"))
        wait_until(lambda: len(gpus.processes()) == 3, WAIT, "the processes on their GPUs")
        roots = {
            "mine": part.roots()._replace(gpus=(cards[1], cards[2], cards[4])),
            "other": other.roots()._replace(gpus=(cards[2],)),
        }
        sampler = UsageSampler(gpus, now)
        for now.now in range(10, 110, 10):
            found = sampler.sample(roots)
    one, two, four = found["mine"].gpus
    assert [use.held for use in (one, two, four)] == [100.0] * 3
    assert [use.used for use in (one, two, four)] == [pytest.approx(70, rel=0.05), pytest.approx(30, rel=0.05), 0.0]
    assert [use.mem_used for use in (one, two, four)] == [pytest.approx(35, rel=0.05), pytest.approx(15, rel=0.05), 0.0]
    assert [use.idle for use in (one, two, four)] == [0.0, 0.0, 100.0]
    assert [use.max_mem for use in (one, two, four)] == [3000, 500, 0]
    assert one.pcie_sent == pytest.approx(70_000, rel=0.05)
    assert two.pcie_received == pytest.approx(60_000, rel=0.05)
    (shared,) = found["other"].gpus
    assert [shared.used, shared.max_mem] == [pytest.approx(10, rel=0.05), 700]
    assert all(use.energy > 0 for use in (one, two, four, shared))
