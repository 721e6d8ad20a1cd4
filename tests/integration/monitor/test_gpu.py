"""GPUs through the real pynvml: over a simulated libnvidia-ml, and over a real one where there is a driver."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.devtools import simgpu
from agent.monitor.facts import facts
from agent.monitor.gpu import REOPEN_EVERY, GpuSource, open_gpus
from agent.monitor.usage import UsageSampler
from tests.support.daemons.monitored import Shepherded
from tests.support.wait import wait_until

HOST = f"gpuhost-{os.getpid()}"
WAIT = 30.0


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gpus(clock: Clock) -> Iterator[GpuSource]:
    simgpu.install(simgpu.SimulatedDriver(8, HOST))
    source = open_gpus(clock)
    assert source is not None
    yield source
    source.close()
    simgpu.uninstall()


def env_of(mb: int, *indexes: int, **more: str) -> dict[str, str]:
    uuids = ",".join(simgpu.sim_uuid(HOST, index) for index in indexes)
    return {"CUDA_VISIBLE_DEVICES": uuids, "LAVA_SIM_GPU_MB": str(mb), "PATH": "/usr/bin:/bin", **more}


def test_simulated_gpus_are_listed_and_shown_as_facts(gpus: GpuSource):
    listed = gpus.list()
    assert [gpu.index for gpu in listed] == [gpu.minor for gpu in listed] == list(range(8))
    assert len({gpu.uuid for gpu in listed}) == 8
    assert all(gpu.uuid.startswith("GPU-51a00000-") and gpu.memory_mb == simgpu.MEMORY_MB for gpu in listed)
    assert gpus.driver()
    assert [gpu.uuid for gpu in facts(gpus, "").gpus] == [gpu.uuid for gpu in listed]
    assert set(gpus.health().values()) == {""}
    assert [one.util_percent for one in gpus.load()] == [0] * 8


def test_uuids_are_stable_for_a_host_and_differ_between_hosts():
    assert simgpu.sim_uuid("a", 0) == simgpu.sim_uuid("a", 0)
    assert simgpu.sim_uuid("a", 0) != simgpu.sim_uuid("b", 0)


def test_links_are_two_islands(gpus: GpuSource):
    links = gpus.links()
    for a in range(8):
        for b in range(8):
            assert links[a][b] == ("SELF" if a == b else "NV" if a // 4 == b // 4 else "SYS")


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
        load = {one.uuid: one for one in gpus.load()}
        assert load[simgpu.sim_uuid(HOST, 1)].mem_used_mb == 3000
        assert load[simgpu.sim_uuid(HOST, 1)].util_percent == 70
        assert load[simgpu.sim_uuid(HOST, 1)].temperature > load[simgpu.sim_uuid(HOST, 0)].temperature


def test_a_shell_around_a_program_uses_no_gpu_of_its_own(gpus: GpuSource, tmp_path: Path):
    with Shepherded(tmp_path) as part:
        pid = part.start(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], env_of(100, 0))
        (child,) = map(int, wait_until(part.said, WAIT, "the child"))
        part.strays.append(child)
        wait_until(lambda: [one.pid for one in gpus.processes()] == [child], WAIT, f"{child} alone, not {pid}")


def test_faults_are_named_and_an_end_of_them_is_noticed(
    gpus: GpuSource, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    faults = tmp_path / "faults.json"
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(faults))
    faults.write_text(json.dumps({"2": "lost", "5": "ecc"}))
    ill = {uuid: why for uuid, why in gpus.health().items() if why}
    assert ill == {simgpu.sim_uuid(HOST, 2): "lost", simgpu.sim_uuid(HOST, 5): "2 uncorrected ECC errors"}
    assert len(gpus.list()) == 8
    assert len(gpus.load()) == 7
    clock.now += REOPEN_EVERY
    assert gpus.health()[simgpu.sim_uuid(HOST, 2)] == "lost"
    assert gpus.links()[2][3] == ""
    faults.unlink()
    clock.now += REOPEN_EVERY
    assert set(gpus.health().values()) == {""}
    assert len(gpus.load()) == 8


def test_a_driver_that_goes_away_and_comes_back_is_opened_again(
    gpus: GpuSource, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    faults = tmp_path / "faults.json"
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(faults))
    faults.write_text('{"driver": "gone"}')
    assert gpus.load() == []
    assert gpus.processes() == []
    assert set(gpus.health().values()) == {"the driver does not answer"}
    clock.now += REOPEN_EVERY
    assert gpus.load() == []
    assert len(gpus.list()) == 8
    simgpu.install(simgpu.SimulatedDriver(4, HOST))
    assert open_gpus() is None
    simgpu.install(simgpu.SimulatedDriver(8, HOST))
    faults.unlink()
    clock.now += REOPEN_EVERY
    assert len(gpus.load()) == 8


def test_a_host_without_a_driver_has_no_gpus():
    simgpu.uninstall()
    source = open_gpus()
    if source is not None:
        source.close()
        pytest.skip("this host has a driver")
    assert source is None


def test_real_gpus_are_listed():
    simgpu.uninstall()
    source = open_gpus()
    if source is None:
        pytest.skip("no NVIDIA driver on this host")
    try:
        for gpu in source.list():
            assert gpu.uuid.startswith("GPU-")
            assert gpu.memory_mb > 0
        assert source.driver()
        assert {one.uuid for one in source.load()} == {gpu.uuid for gpu in source.list()}
        assert all(0 <= one.util_percent <= 100 for one in source.load())
        assert all(one.pid > 0 for one in source.processes())
        assert len(source.links()) == len(source.list())
    finally:
        source.close()


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
    assert [use.idle for use in (one, two, four)] == [0.0, 0.0, 100.0]
    assert [use.max_mem for use in (one, two, four)] == [3000, 500, 0]
    assert one.pcie_sent == pytest.approx(70_000, rel=0.05)
    assert two.pcie_received == pytest.approx(60_000, rel=0.05)
    (shared,) = found["other"].gpus
    assert [shared.used, shared.max_mem] == [pytest.approx(10, rel=0.05), 700]
    assert all(use.energy > 0 for use in (one, two, four, shared))
