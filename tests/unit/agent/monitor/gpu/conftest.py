"""Simulated GPUs under the real pynvml, a clock that goes on when it is told to, and processes that use GPUs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu.source import GpuSource, open_gpus
from tests.support.wait import wait_until

HOST = f"gpuunit-{os.getpid()}"
Faults = Callable[..., None]
Run = Callable[..., int]


class Clock:
    """Seconds."""

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


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Faults:
    """Writes the faults that there are from now on: ``faults({"2": "lost"})``."""
    file = tmp_path / "faults.json"
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(file))

    def write(found: dict[str, str]) -> None:
        file.with_suffix(".new").write_text(json.dumps(found))
        file.with_suffix(".new").rename(file)

    write({})
    return write


@pytest.fixture
def run() -> Iterator[Run]:
    """Starts a process that uses devices: ``run(3000, 70, uuid)``; gives its pid."""
    started = []

    def start(mb: int, util: int, *uuids: str, **more: str) -> int:
        env = {"CUDA_VISIBLE_DEVICES": ",".join(uuids), "LAVA_SIM_GPU_MB": str(mb), "LAVA_SIM_GPU_UTIL": str(util)} | more
        started.append(subprocess.Popen(["/bin/sleep", "1000"], env=env))
        # the kernel shows it a moment after the program has begun
        wait_until(Path(f"/proc/{started[-1].pid}/environ").read_bytes, 30, "its environment")
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()
