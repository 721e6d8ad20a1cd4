"""GPUs in exclusive_process mode for as long as a part is here, whatever happens to the agent meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu.source import GpuSource, open_gpus
from agent.monitor.gpu.watch import HANGS, GpuWatch
from agent.parts.gpu_modes import GpuModes

HOST = f"modes-{os.getpid()}"
UUIDS = [simgpu.sim_uuid(HOST, index) for index in range(3)]


class Bench:
    """An agent's modes; ``again`` is the agent restarted."""

    def __init__(self, source: GpuSource, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.again()

    def again(self) -> None:
        self.poked = asyncio.Event()
        self.modes = GpuModes(GpuWatch(lambda: self.source), str(self.folder), self.poked.set)

    def now(self) -> list[int | None]:
        return [self.source.mode(uuid) for uuid in UUIDS]

    async def keep(self, *uids: str) -> list[int | None]:
        self.poked.clear()
        self.modes.keep(uids)
        async with asyncio.timeout(30):
            await self.poked.wait()
        return self.now()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(tmp_path / "faults.json"))
    simgpu.install(simgpu.SimulatedDriver(3, HOST))
    source = open_gpus(lambda: 0.0)
    assert source is not None
    yield Bench(source, tmp_path)
    source.close()
    simgpu.uninstall()


def break_gpus(bench: Bench, **faults: str) -> None:
    (bench.folder / "faults.json").write_text(json.dumps({name.lstrip("_"): fault for name, fault in faults.items()}))


def test_a_mode_comes_back_when_its_part_is_over_and_after_a_restart(bench: Bench) -> None:
    async def story() -> None:
        bench.source.set_mode(UUIDS[1], 2)
        assert await bench.modes.take("one", UUIDS[:2]) == ""
        assert await bench.modes.take("two", UUIDS[2:]) == ""
        assert bench.now() == [3, 3, 3]
        assert await bench.keep("two") == [0, 2, 3]
        bench.again()
        bench.modes.keep(["two"])
        assert not bench.poked.is_set()
        assert await bench.keep() == [0, 2, 0]
        bench.again()
        bench.modes.keep([])
        assert not bench.poked.is_set()

    asyncio.run(story())


def test_a_gpu_that_another_part_takes_over_gets_its_first_mode_back(bench: Bench) -> None:
    async def story() -> None:
        await bench.modes.take("one", UUIDS[:1])
        await bench.modes.take("two", UUIDS[:1])
        assert bench.now()[0] == 3
        assert await bench.keep("one") == [0, 0, 0]

    asyncio.run(story())


def test_what_cannot_be_set_is_said_with_the_gpu_and_the_rest_comes_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        break_gpus(bench, _1="lost")
        why = await bench.modes.take("one", UUIDS[:2])
        assert why == f"the compute mode of GPU {UUIDS[1]} cannot be set to exclusive_process: it does not answer"
        assert await bench.keep() == [0, None, 0]
        break_gpus(bench)
        monkeypatch.setattr(GpuSource, "set_mode", lambda *_: "Insufficient Permissions")
        why = await bench.modes.take("two", UUIDS[2:])
        assert why == f"the compute mode of GPU {UUIDS[2]} cannot be set to exclusive_process: Insufficient Permissions"
        monkeypatch.undo()
        monkeypatch.setattr("agent.parts.gpu_modes.HANGS_AFTER", 0.05)
        break_gpus(bench, driver="hangs")
        monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(bench.folder / "faults.json"))
        assert await bench.modes.take("three", UUIDS[2:]) == HANGS
        break_gpus(bench)

    asyncio.run(story())


def test_a_host_without_a_driver_promises_no_mode(tmp_path: Path) -> None:
    async def story() -> None:
        modes = GpuModes(GpuWatch(lambda: None), str(tmp_path), lambda: None)
        assert "GPU-x cannot be set" in await modes.take("one", ["GPU-x"])

    asyncio.run(story())
