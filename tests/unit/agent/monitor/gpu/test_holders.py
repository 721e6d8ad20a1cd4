"""Who still holds a GPU of a job that is over: what may be ended of it, and what keeps the GPU closed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.monitor.gpu.held import HeldGpus
from agent.monitor.gpu.holders import Ended, Holder, find, left, sentence, to_end
from agent.monitor.gpu.records import GpuProcess
from agent.monitor.procscan import read_proc
from tests.unit.agent.monitor.gpu.conftest import Run

ANN, BOB = 1001, 1002
OWN, OTHER = "attempt", "other"
ALONE = Ended(OWN, "ann", ANN, ("G0", "G1"), ("G0", "G1"))
SHARED = Ended(OWN, "ann", ANN, ("G0", "G1"), ())


def holder(uid: int = ANN, attempt: str = "", lives: bool = False, uuid: str = "G0") -> Holder:
    return Holder(uuid, 4711, 1, uid, attempt, lives)


@pytest.mark.parametrize(
    ("one", "ended", "goes", "stays"),
    [
        (holder(attempt=OWN), ALONE, True, True),
        (holder(attempt=OWN), SHARED, True, True),
        (holder(), ALONE, True, True),
        (holder(), SHARED, False, False),
        (holder(attempt=OTHER), ALONE, False, False),
        (holder(attempt=OTHER), SHARED, False, False),
        (holder(attempt="of an hour ago"), ALONE, True, True),
        (holder(lives=True, attempt=OWN), ALONE, False, False),
        (holder(BOB), ALONE, False, True),
        (holder(BOB, OWN), ALONE, False, True),
        (holder(BOB), SHARED, False, False),
        (holder(0), ALONE, False, False),
        (holder(0, OWN), ALONE, False, False),
        (holder(uuid="G7"), ALONE, False, False),
    ],
)
def test_what_goes_with_a_job_that_is_over_and_what_keeps_its_gpu_closed(one: Holder, ended: Ended, goes: bool, stays: bool):
    assert to_end([one], ended, {OTHER}) == [one] * goes
    assert left([one], ended, {OTHER}) == [one] * stays


def test_of_roots_own_jobs_only_what_is_the_jobs_goes():
    root = Ended(OWN, "root", 0, ("G0",), ("G0",))
    assert to_end([holder(0, OWN), holder(0)], root, ()) == [holder(0, OWN)]


def test_it_is_named():
    assert sentence([holder()], ALONE) == "process 4711 of user ann still holds it"
    assert sentence([holder(BOB)], ALONE) == "process 4711 of user 1002 still holds it"
    assert sentence([holder(), holder()._replace(pid=5000)], ALONE) == "process 4711 of user ann and 1 more hold it"


def test_processes_are_found_with_their_attempt_and_whose_they_are(run: Run):
    pid = run(100, 10, "G0", LAVA_ATTEMPT=OWN)
    processes = [GpuProcess("G0", pid, 100, 0), GpuProcess("G1", pid, 100, 0), GpuProcess("G0", 1 << 22, 0, 0)]
    [found] = find(processes, ("G0",), ())
    assert (found.uuid, found.pid, found.uid, found.attempt, found.lives) == ("G0", pid, os.getuid(), OWN, False)
    assert find(processes, ("G0",), {os.getpid()})[0].lives


def test_a_gpu_is_held_until_its_processes_are_gone_also_over_a_restart(tmp_path: Path, run: Run):
    path = str(tmp_path / "held")
    pids = [run(1, 1, "G0"), run(1, 1, "G1")]
    held = HeldGpus(path)
    for uuid, pid in zip(("G0", "G1"), pids, strict=True):
        proc = read_proc(pid)
        assert proc is not None
        held.hold(uuid, f"process {pid}", [(pid, proc.start)])
    held = HeldGpus(path)
    both = [GpuProcess("G0", pids[0], 1, 0), GpuProcess("G1", pids[1], 1, 0)]
    held.look(both, ("G0", "G1"))
    assert (held.why("G0"), held.why("G1"), held.why("G2")) == (f"process {pids[0]}", f"process {pids[1]}", "")
    held.look(both[:1], ("G0",))
    assert held.why("G1")  # its GPU does not answer
    held.look(both[:1], ("G0", "G1"))
    assert (held.why("G0"), held.why("G1")) == (f"process {pids[0]}", "")
    assert HeldGpus(path).why("G1") == ""
    held.hold("G1", "gone", [(pids[1], 1)])
    held.look(both, ("G0", "G1"))
    assert held.why("G1") == ""


def test_a_file_that_is_no_good_is_nobody(tmp_path: Path):
    (tmp_path / "held").write_text("{")
    assert HeldGpus(str(tmp_path / "held")).why("G0") == ""
