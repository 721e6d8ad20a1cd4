"""The simulated library as pynvml sees it: identity, Xid events, compute modes, faults of each kind."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pynvml
import pytest

from agent.devtools import simgpu
from tests.support.wait import wait_until

HOST = f"gpulib-{os.getpid()}"
WAIT = 30.0


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of faults, of an opened library with four GPUs."""
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(tmp_path / "faults"))
    simgpu.install(simgpu.SimulatedDriver(4, HOST))
    pynvml.nvmlInit()
    yield tmp_path / "faults"
    simgpu.uninstall()


def put(file: Path, **faults: str) -> None:
    file.with_suffix(".new").write_text(json.dumps({key.lstrip("_"): value for key, value in faults.items()}))
    file.with_suffix(".new").rename(file)


def test_uuids_are_stable_for_a_host_and_differ_between_hosts():
    assert simgpu.sim_uuid("a", 0) == simgpu.sim_uuid("a", 0)
    assert simgpu.sim_uuid("a", 0) != simgpu.sim_uuid("b", 0)


def test_an_xid_error_is_an_event_once(file: Path):
    events, gpu = pynvml.nvmlEventSetCreate(), pynvml.nvmlDeviceGetHandleByIndex(2)
    put(file, _2="xid31")
    pynvml.nvmlDeviceRegisterEvents(gpu, pynvml.nvmlEventTypeXidCriticalError, events)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait_v2(events, 10)
    put(file, _2="xid31,xid48", _1="xid31")
    told = pynvml.nvmlEventSetWait_v2(events, 10)
    assert (told.eventType, told.eventData) == (pynvml.nvmlEventTypeXidCriticalError, 48)
    assert pynvml.nvmlDeviceGetUUID(told.device) == simgpu.sim_uuid(HOST, 2)
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait_v2(events, 10)
    put(file, _2="xid79")
    assert pynvml.nvmlEventSetWait_v2(events, 10).eventData == 79
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetUUID(gpu)
    pynvml.nvmlEventSetFree(events)
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlEventSetWait_v2(events, 10)


def test_compute_modes_are_set(file: Path):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetComputeMode(gpu) == pynvml.NVML_COMPUTEMODE_DEFAULT
    pynvml.nvmlDeviceSetComputeMode(gpu, pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)
    assert pynvml.nvmlDeviceGetComputeMode(gpu) == pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceSetComputeMode(gpu, 9)


def test_rows_to_be_remapped_and_heat_are_told(file: Path):
    put(file, _0="remap", _1="remapfailed,hot")
    one, other = (pynvml.nvmlDeviceGetHandleByIndex(index) for index in (0, 1))
    assert pynvml.nvmlDeviceGetRemappedRows(one) == (0, 1, 1, 0)
    assert pynvml.nvmlDeviceGetRemappedRows(other) == (0, 1, 0, 1)
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(one) == 0
    assert pynvml.nvmlDeviceGetCurrentClocksEventReasons(other) == pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    assert pynvml.nvmlDeviceGetTemperature(other, 0) == 95


def test_a_driver_that_hangs_returns_when_the_fault_ends(file: Path):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    put(file, driver="hangs")
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(pynvml.nvmlDeviceGetUUID(gpu)))
    thread.start()
    assert not answers
    put(file)
    thread.join(WAIT)
    assert answers == [simgpu.sim_uuid(HOST, 0)]


def test_power_adds_up_to_energy(file: Path):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetPowerUsage(gpu) == 70_000
    assert pynvml.nvmlDeviceGetPowerManagementLimit(gpu) == 700_000
    wait_until(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) > 700, WAIT, "10 ms at 70 W")
