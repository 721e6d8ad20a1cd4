"""GPUs as NVIDIA's own library and driver tell of them, beside nvidia-smi: ``make test-gpu``.

Needs nothing but the Python package and a driver; skips, and says why, without one.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import pytest

from agent.monitor.gpu.source import GpuSource, open_gpus
from agent.monitor.gpu.watch import GpuWatch
from tests.support.live.nvidia import CUDA_USER, WAIT, number, smi
from tests.support.wait import wait_until

CLOSE = 0.05
"""What two looks, one after the other, may differ by, of the largest value."""
MB = 512


@pytest.fixture
def gpus() -> Iterator[GpuSource]:
    source = open_gpus()
    assert source is not None
    yield source
    source.close()


def test_facts_are_those_of_nvidia_smi(gpus: GpuSource) -> None:
    told = smi("gpu", "index,uuid,name,memory.total,driver_version,pci.bus_id,mig.mode.current")
    listed = [gpu for gpu in gpus.list() if not gpu.parent]
    assert [(gpu.index, gpu.uuid, gpu.model, gpu.bus) for gpu in listed] == [
        (int(row["index"]), row["uuid"], row["name"], row["pci.bus_id"]) for row in told
    ]
    assert {gpus.driver()} == {row["driver_version"] for row in told}
    assert [gpu.memory_mb for gpu in listed] == pytest.approx([float(row["memory.total"]) for row in told], rel=CLOSE)
    assert [gpu.split for gpu in listed] == [row["mig.mode.current"] == "Enabled" for row in told]
    assert gpus.error() == ""


def test_instances_are_those_of_nvidia_smi(gpus: GpuSource) -> None:
    try:
        text = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=WAIT).stdout
    except FileNotFoundError:
        pytest.skip("no nvidia-smi on this host")
    for gpu in gpus.list():
        line = next(line for line in text.splitlines() if gpu.uuid in line)
        assert gpu.profile in line
    assert text.count("UUID: MIG-") == sum(bool(gpu.parent) for gpu in gpus.list())


def test_states_are_within_five_percent_of_nvidia_smi(gpus: GpuSource) -> None:
    fields = "uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,power.draw,power.limit,pstate,compute_mode"

    def differ() -> list[str]:
        states = {state.uuid: state for state in gpus.states()}
        found = []
        for row in smi("gpu", fields):
            state = states[row["uuid"]]
            pairs = (
                ("memory.used", state.mem_used, number(row["memory.total"])),
                ("utilization.gpu", state.util, 100.0),
                ("temperature.gpu", state.temperature, 100.0),
                ("power.draw", state.power, number(row["power.limit"])),
            )
            for name, mine, most in pairs:
                theirs = number(row[name])
                if (theirs is None) != (mine < 0):
                    found.append(f"{name} of {row['uuid']}: {mine} beside {row[name]}")
                elif theirs is not None and abs(mine - theirs) > CLOSE * (most or theirs):
                    found.append(f"{name} of {row['uuid']}: {mine} beside {theirs}")
            if row["compute_mode"].upper().replace(" ", "_") != state.mode:
                found.append(f"compute mode of {row['uuid']}: {state.mode} beside {row['compute_mode']}")
            if state.error:
                found.append(f"{row['uuid']}: {state.error}")
        return found

    # between the two looks a GPU may begin or end something
    wait_until(lambda: not differ(), WAIT, lambda: f"the same figures: {differ()}")


def test_links_are_told_of_each_pair(gpus: GpuSource) -> None:
    links, count = gpus.links(), len(gpus.list())
    assert [len(row) for row in links] == [count] * count
    assert all(links[at][at] == "SELF" for at in range(count))
    assert all(links[a][b] == links[b][a] for a in range(count) for b in range(count))


def test_the_processes_of_a_gpu_are_those_of_nvidia_smi(gpus: GpuSource) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([*CUDA_USER, str(MB), "0"], stdin=pipe, stdout=pipe, stderr=pipe) as user:
        assert user.stdout is not None
        if not (user.stdout.readline() and user.stdout.readline()):
            pytest.skip(f"no process can use a GPU here: {user.communicate()[1].decode().strip()}")
        fields = "gpu_uuid,pid,used_memory"
        told = {(row["gpu_uuid"], int(row["pid"])): number(row["used_memory"]) for row in smi("compute-apps", fields)}
        seen = {(one.uuid, one.pid): one.mem_mb for one in gpus.processes()}
        assert seen.keys() == told.keys()
        assert [mb for mb in seen.values() if mb >= MB]
        for key, mb in told.items():
            assert mb is None or seen[key] == pytest.approx(mb, rel=CLOSE)
        user.communicate()


def test_a_look_has_facts_states_and_counters() -> None:
    async def story() -> None:
        watch = GpuWatch()
        await watch.look(WAIT)
        found, version = watch.facts()
        assert version
        assert [gpu.uuid for gpu in found] == [state.uuid for state in watch.states()]
        assert watch.readings().keys() <= {gpu.uuid for gpu in found}
        assert watch.error() == ""

    asyncio.run(story())
