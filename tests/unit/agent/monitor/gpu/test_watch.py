"""A driver that hangs, is missing or comes back holds nobody up: what is asked for is there at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu import watch
from agent.monitor.gpu.nvml import REOPEN_EVERY
from agent.monitor.gpu.source import GpuSource
from agent.monitor.gpu.watch import HANGS, GpuWatch
from agent.monitor.health import GpuHealth
from agent.monitor.usage import UsageSampler
from agent.parts.host_monitor import HostMonitor
from config.model.site_params import SiteParams
from tests.unit.agent.monitor.gpu.conftest import HOST, Clock, Faults, Run

WAIT = 30.0


async def until(gpus: GpuWatch, true: Callable[[], bool]) -> None:
    """Look until that is so."""
    async with asyncio.timeout(WAIT):
        while not true():
            await gpus.look(WAIT)


def test_a_driver_that_hangs_holds_up_nobody_and_comes_back(
    gpus: GpuSource, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        seen = GpuWatch(lambda: gpus)
        await seen.look(WAIT)
        facts = seen.facts()
        assert len(facts[0]) == 8
        assert seen.error() == ""
        faults({"driver": "hangs"})
        monkeypatch.setattr(watch, "HANGS_AFTER", 0.0)
        await seen.look(0.01)
        await seen.look(0.01)
        assert seen.hangs
        assert seen.error() == HANGS
        assert {state.error for state in seen.states()} == {HANGS}
        assert (seen.readings(), seen.processes()) == ({}, [])
        assert seen.facts() == facts
        assert UsageSampler(seen).sample({}) == {}
        faults({})
        await until(seen, lambda: not seen.hangs)
        assert seen.error() == ""
        assert {state.error for state in seen.states()} == {""}

    asyncio.run(story())


def test_a_host_greets_without_gpus_while_the_driver_hangs_at_its_start(
    gpus: GpuSource, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(watch, "HANGS_AFTER", 0.05)
        faults({"driver": "hangs"})
        monitor = HostMonitor("127.0.0.1", 3)
        found = await monitor.facts()
        assert (found.ncpus, len(found.gpus)) == (3, 0)
        assert monitor.gpus.error() == HANGS
        assert monitor.gpus.unknown
        assert await monitor.load()
        faults({})
        await until(monitor.gpus, lambda: len(monitor.gpus.facts()[0]) == 8)
        again = await monitor.facts()
        assert (again.ncpus, len(again.gpus), again.gpu_driver) == (3, 8, "550.54.15")
        assert not monitor.gpus.unknown

    asyncio.run(story())


def test_facts_are_those_of_all_devices(gpus: GpuSource, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        monkeypatch.setenv("LAVA_SIM_GPU_MIG", "0=1g.10gb")
        seen = GpuWatch(lambda: gpus)
        await seen.look(WAIT)
        (split, instance, other), driver = seen.facts()[0][:3], seen.facts()[1]
        assert (split.uuid, split.split, split.bus, split.memory) == (simgpu.sim_uuid(HOST, 0), True, "00000000:10:00.0", 81559)
        assert (instance.parent, instance.profile, instance.slices, instance.index) == (split.uuid, "1g.10gb", 1, 0)
        assert list(other.links)[:4] == ["PIX", "PIX", "SELF", "NV"]
        assert driver == "550.54.15"

    asyncio.run(story())


def test_a_driver_that_appears_later_gives_facts(gpus: GpuSource, clock: Clock, faults: Faults, run: Run) -> None:
    async def story() -> None:
        faults({"driver": "gone"})
        seen = GpuWatch(lambda: gpus)
        await seen.look(WAIT)
        assert seen.facts() == ((), "")
        assert seen.error() == "the NVIDIA driver is not loaded"
        faults({})
        clock.now += REOPEN_EVERY
        pid = run(700, 20, simgpu.sim_uuid(HOST, 3))
        await until(seen, lambda: bool(seen.processes()))
        assert len(seen.facts()[0]) == 8
        assert [(one.pid, one.mem_mb) for one in seen.processes()] == [(pid, 700)]
        assert seen.readings()[simgpu.sim_uuid(HOST, 3)].mem_mb == 700

    asyncio.run(story())


def test_what_the_program_of_the_site_says_is_told_of_gpus_that_the_driver_finds_well(gpus: GpuSource, faults: Faults) -> None:
    async def story() -> None:
        ill = [simgpu.sim_uuid(HOST, index) for index in range(2)]
        seen = GpuWatch(lambda: gpus, health=Says(dict.fromkeys(ill, "too slow")))
        await seen.look(WAIT)
        faults({"1": "lost"})
        await seen.look(WAIT)
        seen.held.hold(ill[0], "process 1 of user ann still holds it", [])
        told = {state.uuid: (state.cause, state.error) for state in seen.states()}
        assert (told[ill[0]], told[ill[1]]) == (("health", "too slow"), ("lost", "lost"))
        assert {told[uuid] for uuid in told if uuid not in ill} == {("", "")}
        assert [index for _, index in seen.answering()] == [0, 2, 3, 4, 5, 6, 7]

    asyncio.run(story())


class Says(GpuHealth):
    """A program of the site that has said this."""

    def __init__(self, said: dict[str, str]) -> None:
        super().__init__(SiteParams(), False)
        self._said = said


def test_a_fresh_look_may_be_one_that_another_began_meanwhile(gpus: GpuSource) -> None:
    async def story() -> None:
        seen = GpuWatch(lambda: gpus)
        others = [asyncio.create_task(seen.look(WAIT))]
        await asyncio.sleep(0)
        assert seen._looking is not None
        seen._looking.add_done_callback(lambda _: others.append(asyncio.create_task(seen.look(WAIT))))
        assert await seen.fresh(WAIT)
        await asyncio.gather(*others)

    asyncio.run(story())


def test_a_host_without_nvml_has_no_gpus() -> None:
    seen = GpuWatch(lambda: None)
    asyncio.run(seen.look(WAIT))
    assert (seen.facts(), seen.states(), seen.error(), seen.unknown) == (((), ""), (), "", False)
