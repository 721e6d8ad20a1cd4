"""Ends of parts with GPUs: what is still on these is ended or named, before the master hears that they are free."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.part import Part
from agent.devtools import simgpu
from agent.launch.outputs import OutputPaths
from agent.launch.site import User
from agent.monitor.gpu.held import HeldGpus
from agent.monitor.gpu.holders import Holder
from agent.monitor.gpu.source import GpuSource, open_gpus
from agent.monitor.gpu.watch import HANGS, GpuWatch
from agent.monitor.procscan import read_proc
from agent.parts import gpu_ends
from agent.parts.entry import Entry
from agent.parts.gpu_ends import GpuEnds
from agent.parts.table import PartTable
from agent.starter.protocol.reports import End, Ended, Gone, Lost, PartReport, Started
from proto import agent_pb2 as pb

HOST = f"ends-{os.getpid()}"
G0, G1 = (simgpu.sim_uuid(HOST, index) for index in range(2))
NOBODY = 65534
USER = os.getuid() or NOBODY
"""Whose the parts are: what is root's is never ended by its user alone."""


class Bench:
    """Parts on a host with two GPUs, and processes on these that nothing else would end."""

    def __init__(self, source: GpuSource, folder: Path) -> None:
        self.folder = folder
        self.watch = GpuWatch(lambda: source, HeldGpus(str(folder / "held")))
        self.table = PartTable()
        self.ends = GpuEnds("h1", self.watch, self.table)
        self.poked = asyncio.Event()
        self.ends.poke = self.poked.set
        self.processes: list[subprocess.Popen[bytes]] = []

    def part(self, uid: str, *gpus: str, user: int = USER) -> Entry:
        start = pb.Start(hosts=[pb.HostSlots(host="h1", slots=1, gpus=gpus)])
        made = cast(Any, SimpleNamespace(user=User("ann", user, user, (), "/", "/bin/sh")))
        entry = Entry(Part(uid, 7, 1), pb.Order(key=7, attempt=1, uid=uid, start=start), made, OutputPaths(), 0.0)
        self.table.add(entry)
        return entry

    def on(self, gpu: str, attempt: str = "", uid: int = USER) -> subprocess.Popen[bytes]:
        """A process on a GPU, which is over only when it is killed."""
        env = {"CUDA_VISIBLE_DEVICES": gpu, "LAVA_SIM_GPU_MB": "1"} | ({"LAVA_ATTEMPT": attempt} if attempt else {})
        self.processes.append(subprocess.Popen(["/bin/sleep", "1000"], env=env, user=None if uid == os.getuid() else uid))
        return self.processes[-1]

    async def judged(self, *ends: tuple[Entry, PartReport]) -> list[PartReport]:
        """The reports that wait no longer, once all of these were looked at."""
        found: list[PartReport] = []
        for entry, report in ends:
            assert self.ends.take(entry, report)
        async with asyncio.timeout(60):
            while len(found) < len(ends):
                await self.poked.wait()
                self.poked.clear()
                found += [report for _, report in self.ends.done()]
        return found


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("LAVA_SIM_GPU_FAULTS", str(tmp_path / "faults"))
    monkeypatch.setattr(gpu_ends, "LOOK", 300.0)  # a machine that is busy with other tests is no driver that hangs
    simgpu.install(simgpu.SimulatedDriver(2, HOST))
    source = open_gpus()
    assert source is not None
    found = Bench(source, tmp_path)
    yield found
    (tmp_path / "faults").unlink(missing_ok=True)
    for process in found.processes:
        process.kill()
        process.wait()
    source.close()
    simgpu.uninstall()


def faults(entry: Entry) -> list[tuple[str, str, str]]:
    return [(one.uuid, one.cause, one.error) for one in entry.gpu_end.faults]


def test_only_ends_of_parts_with_gpus_wait(bench: Bench) -> None:
    async def story() -> None:
        entry = bench.part("u", G0)
        assert not bench.ends.take(entry, Started("u", (), 0.0))
        assert not bench.ends.take(bench.part("v"), Gone("v"))
        entry.orphan = True
        assert not bench.ends.take(entry, Gone("u"))

    asyncio.run(story())


def test_what_is_left_is_ended_only_when_the_part_is_gone(bench: Bench) -> None:
    async def story() -> None:
        entry, own = bench.part("u", G0), bench.on(G0, "u")
        end = End(0, 2.0, 1.0, 0.0, 0.0, 0, (), None, False)
        first: list[PartReport] = [Ended("u", end)]
        assert await bench.judged((entry, first[0])) == first
        assert (own.poll(), faults(entry)) == (None, [])
        assert await bench.judged((entry, Gone("u"))) == [Gone("u")]
        assert own.wait(30) == -9
        assert faults(entry) == []

    asyncio.run(story())


def test_parts_that_share_a_gpu_and_end_together_leave_nobody_on_it(bench: Bench) -> None:
    async def story() -> None:
        one, two, third = bench.part("u", G0), bench.part("v", G0), bench.part("w", G1)
        nameless, other = bench.on(G0), bench.on(G1)
        await bench.judged((one, Gone("u")))
        assert nameless.poll() is None, "the other part may have it"
        one.over = True
        again = bench.part("x", G0)
        await bench.judged((two, Gone("v")), (again, Lost("x", "its shepherd died")))
        assert nameless.wait(30) == -9
        assert (other.poll(), faults(two), faults(again)) == (None, [], [])
        assert third.gpu_end.faults == ()

    asyncio.run(story())


@pytest.mark.skipif(os.getuid() != 0, reason="a process of another user needs root")
def test_what_may_not_be_ended_is_named_and_held_over_a_restart(bench: Bench) -> None:
    async def story() -> None:
        entry, shares, foreign = bench.part("u", G0, user=1), bench.part("v", G0, user=2), bench.on(G0)
        await bench.judged((entry, Gone("u")), (shares, Gone("v")))
        why = f"process {foreign.pid} of user {NOBODY} still holds it"
        assert faults(entry) == faults(shares) == [(G0, "held", why)]
        assert foreign.poll() is None
        after = HeldGpus(str(bench.folder / "held"))
        assert (after.why(G0), after.why(G1)) == (why, "")

    asyncio.run(story())


def test_a_gpu_that_broke_is_told_to_the_user_and_a_driver_that_hangs_holds_up_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        await bench.watch.first_look()
        (bench.folder / "faults").write_text('{"1": "lost"}')
        entry = bench.part("u", G0, G1)
        await bench.judged((entry, Gone("u")))
        assert faults(entry) == [(G1, "lost", "lost")]
        assert entry.gpu_end.told == "GPU 1 of host h1 was lost"
        monkeypatch.setattr(gpu_ends, "LOOK", 0.1)
        (bench.folder / "faults").write_text('{"driver": "hangs"}')
        await bench.judged((entry, Gone("u")))
        assert faults(entry) == [(G0, "health", HANGS), (G1, "health", HANGS)]
        (bench.folder / "faults").unlink()

    asyncio.run(story())


def test_a_number_that_is_another_processs_by_now_is_not_killed(bench: Bench) -> None:
    its, others = bench.on(G0), bench.on(G0)
    for process, later in ((its, 0), (others, 1)):
        proc = read_proc(process.pid)
        assert proc is not None
        gpu_ends._kill(Holder(G0, process.pid, proc.start - later, USER))
        process.terminate()
    assert (its.wait(10), others.wait(10)) == (-signal.SIGKILL, -signal.SIGTERM)
    gpu_ends._kill(Holder(G0, its.pid, 1, USER))
