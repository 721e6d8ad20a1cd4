"""GPUs as they are asked: facts, states, processes, faults, and a driver that goes away and comes back."""

from __future__ import annotations

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu.nvml import REOPEN_EVERY
from agent.monitor.gpu.source import FACTS_EVERY, GpuSource, open_gpus
from tests.support.wait import wait_until
from tests.unit.agent.monitor.gpu.conftest import HOST, Clock, Faults, Run

WAIT = 30.0


def uuid(index: int) -> str:
    return simgpu.sim_uuid(HOST, index)


def errors(gpus: GpuSource) -> dict[str, str]:
    return {state.uuid: state.error for state in gpus.states() if state.error}


def test_gpus_are_listed_and_shown_as_facts(gpus: GpuSource):
    listed = gpus.list()
    assert [gpu.index for gpu in listed] == [gpu.minor for gpu in listed] == list(range(8))
    assert [gpu.uuid for gpu in listed] == [uuid(index) for index in range(8)]
    assert {(gpu.model, gpu.memory_mb) for gpu in listed} == {("NVIDIA H100 80GB HBM3", 81559)}
    assert listed[1].bus == "00000000:18:00.0"
    assert gpus.error() == ""
    assert gpus.driver() == "550.54.15"


def test_models_and_numa_nodes_are_those_of_each_gpu(gpus: GpuSource, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAVA_SIM_GPU_MODELS", "A100,V100")
    monkeypatch.setenv("LAVA_SIM_GPU_NUMA", "2")
    listed = gpus.list()
    assert [gpu.model for gpu in listed[:3]] == ["NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-32GB", "Tesla V100-SXM2-32GB"]
    assert [gpu.memory_mb for gpu in listed[:2]] == [81920, 32768]
    assert [gpu.numa for gpu in listed] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_links_are_two_islands(gpus: GpuSource):
    links = gpus.links()
    for a in range(8):
        for b in range(8):
            assert links[a][b] == ("SELF" if a == b else "NV" if a // 4 == b // 4 else "SYS")


def test_states_of_an_idle_and_a_busy_gpu(gpus: GpuSource, run: Run):
    pid = run(3000, 70, uuid(1))
    wait_until(lambda: gpus.processes(), WAIT, "the process on its GPU")
    idle, busy = gpus.states()[:2]
    assert (idle.util, idle.mem_util, idle.mem_used, idle.temperature, idle.power, idle.ecc) == (0, 0, 0, 35, 70, 0)
    assert (idle.pstate, idle.mode, idle.pcie_sent, idle.pcie_received, idle.error) == (8, "DEFAULT", 0, 0, "")
    assert (busy.util, busy.mem_util, busy.mem_used, busy.temperature, busy.power) == (70, 35, 3000, 58, 511)
    assert (busy.pstate, busy.pcie_sent, busy.pcie_received) == (0, 700, 1400)
    assert [(one.uuid, one.pid, one.mem_mb) for one in gpus.processes()] == [(uuid(1), pid, 3000)]


def test_a_gpu_in_mig_mode_has_instances(gpus: GpuSource, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LAVA_SIM_GPU_MIG", "1=3g.40gb,1g.10gb,1c.3g.40gb")
    listed = gpus.list()
    assert [gpu.index for gpu in listed] == [0, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7]
    split, instances = listed[1], listed[2:5]
    assert (split.split, split.parent) == (True, "")
    assert [(one.profile, one.slices, one.compute_slices) for one in instances] == [
        ("3g.40gb", 3, 3),
        ("1g.10gb", 1, 1),
        ("1c.3g.40gb", 3, 1),
    ]
    assert {(one.parent, one.model, one.minor, one.bus, one.split) for one in instances} == {
        (split.uuid, split.model, 1, split.bus, False)
    }
    assert all(one.uuid.startswith("MIG-") for one in instances)
    assert instances[1].memory_mb == 9728
    links = gpus.links()
    assert links[2][:6] == ("PIX", "", "SELF", "", "", "PHB")
    assert links[0][5] == "NV"
    pid = run(500, 40, instances[0].uuid)
    wait_until(lambda: gpus.processes(), WAIT, "the process on its instance")
    assert [(one.uuid, one.pid, one.mem_mb) for one in gpus.processes()] == [(instances[0].uuid, pid, 500)]
    states = gpus.states()
    assert (states[1].util, states[1].mem_used, states[1].power > 70) == (-1, 500, True)
    assert (states[2].util, states[2].mem_used, states[2].temperature, states[3].mem_used) == (-1, 500, -1, 0)


def test_instances_that_are_made_anew_are_found(gpus: GpuSource, clock: Clock, faults: Faults):
    faults({"mig": "0=3g.40gb,3g.40gb"})
    before = gpus.list()
    assert [gpu.profile for gpu in before[:3]] == ["", "3g.40gb", "3g.40gb"]
    faults({"mig": "0=7g.80gb"})
    clock.now += FACTS_EVERY
    after = gpus.list()
    assert [gpu.profile for gpu in after[:3]] == ["", "7g.80gb", ""]
    assert not {gpu.uuid for gpu in before[1:3]} & {gpu.uuid for gpu in after}
    faults({})
    clock.now += FACTS_EVERY
    assert [gpu.split for gpu in gpus.list()] == [False] * 8


def test_faults_are_named_and_an_end_of_them_is_noticed(gpus: GpuSource, clock: Clock, faults: Faults):
    assert len(gpus.list()) == 8
    faults({"2": "lost", "5": "ecc"})
    assert errors(gpus) == {uuid(2): "lost", uuid(5): "2 uncorrected ECC errors"}
    clock.now += REOPEN_EVERY
    assert errors(gpus)[uuid(2)] == "lost"
    assert gpus.states()[2].temperature == -1
    assert len(gpus.list()) == 8
    assert gpus.links()[2][3] == "NV"
    faults({})
    clock.now += REOPEN_EVERY
    assert errors(gpus) == {}


def test_a_gpu_that_never_said_who_it_is_is_named(gpus: GpuSource, clock: Clock, faults: Faults):
    faults({"2": "lost"})
    assert [gpu.index for gpu in gpus.list()] == [0, 1, 3, 4, 5, 6, 7]
    assert gpus.error() == "GPU 2 does not answer"
    faults({})
    clock.now += REOPEN_EVERY
    assert len(gpus.list()) == 8
    assert gpus.error() == ""


def test_a_driver_that_goes_away_and_comes_back_is_opened_again(gpus: GpuSource, clock: Clock, faults: Faults):
    assert len(gpus.states()) == 8
    faults({"driver": "gone"})
    gpus.states()
    assert set(errors(gpus).values()) == {"the NVIDIA driver does not answer"}
    assert gpus.processes() == []
    clock.now += REOPEN_EVERY
    assert set(errors(gpus).values()) == {"the NVIDIA driver is not loaded"}
    assert gpus.error() == "the NVIDIA driver is not loaded"
    assert len(gpus.list()) == 8
    faults({})
    clock.now += REOPEN_EVERY
    assert errors(gpus) == {}
    assert gpus.error() == ""


def test_a_driver_that_appears_later_is_found(gpus: GpuSource, clock: Clock, faults: Faults):
    faults({"driver": "gone"})
    assert gpus.list() == ()
    assert gpus.error() == "the NVIDIA driver is not loaded"
    faults({})
    assert gpus.list() == ()
    clock.now += REOPEN_EVERY
    assert len(gpus.list()) == 8


def test_a_host_without_a_library_has_no_gpus():
    simgpu.uninstall()
    source = open_gpus()
    assert source is not None
    if source.driver():
        source.close()
        pytest.skip("this host has a driver")
    assert source.list() == source.states() == ()
    assert source.processes() == []


def test_figures_that_cannot_be_are_not_known_and_named_once(
    gpus: GpuSource, clock: Clock, faults: Faults, caplog: pytest.LogCaptureFixture
):
    faults({"3": "nonsense"})
    assert gpus.list()[3].memory_mb == 0
    state = gpus.states()[3]
    assert (state.util, state.mem_util, state.mem_used, state.temperature) == (-1, -1, -1, -1)
    assert (state.power, state.pstate, state.mode) == (70, 8, "DEFAULT")
    once = len(caplog.messages)
    assert f"GPU {uuid(3)}: use of 255: this cannot be, and is not used" in caplog.messages
    assert f"GPU {uuid(3)}: temperature of -40: this cannot be, and is not used" in caplog.messages
    clock.now += FACTS_EVERY
    gpus.states()
    assert len(caplog.messages) == once


def test_of_two_gpus_with_one_uuid_the_first_counts(gpus: GpuSource, faults: Faults, caplog: pytest.LogCaptureFixture):
    faults({"4": "twin"})
    assert [gpu.index for gpu in gpus.list()] == [0, 1, 2, 3, 5, 6, 7]
    assert f"GPU 4: the UUID {uuid(3)} of GPU 3: this cannot be, and is not used" in caplog.messages
