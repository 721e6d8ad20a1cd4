"""Usage of real processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.monitor.procscan import read_proc
from agent.monitor.usage import PSS_EVERY, PSS_SECOND, UsageSampler
from proto import agent_pb2 as pb
from tests.support.daemons.monitored import Shepherded
from tests.support.wait import wait_until

WAIT = 60.0


class Clock:
    """Time that goes on when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def part(tmp_path: Path) -> Iterator[Shepherded]:
    with Shepherded(tmp_path) as part:
        yield part


def sleeper(part: Shepherded) -> int:
    """A rank that has loaded what it needs and does nothing."""
    pid = part.python("import signal; print('go', flush=True); signal.pause()")
    rank = len(part.tasks) - 1
    wait_until(lambda: part.said(rank) and (proc := read_proc(pid)) and proc.state == "S", WAIT, "the rank to sleep")
    return pid


def sample(sampler: UsageSampler, part: Shepherded, memory_limit: int = 0) -> pb.Usage:
    return sampler.sample({"uid": part.roots(memory_limit)})["uid"]


BURN_AND_HOLD = """
import os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
held = bytearray(b"x") * (100 << 20)
while time.process_time() < 3.0:
    sum(range(1000))
used = os.times()
print("done", used.user + used.system, flush=True)
signal.pause()
"""


def test_a_rank_that_burns_a_core_and_holds_memory_is_measured(part: Shepherded):
    """A rank that burns 3 s of one core and holds 100 MiB is measured within 10 %."""
    pid = part.python(BURN_AND_HOLD)
    sampler = UsageSampler(None, clock := Clock())
    wait_until(lambda: part.said() == ["ready"], WAIT, "the rank to be ready")
    bare = sample(sampler, part)
    assert 0 < bare.pss <= bare.rss
    os.kill(pid, signal.SIGUSR1)
    wait_until(lambda: len(part.said()) == 2, WAIT, "the rank to be done")
    told = float(part.said()[1].split()[1])
    clock.now += PSS_SECOND
    usage = sample(sampler, part)
    (task,) = usage.tasks
    for cpu in (usage.cpu, task.cpu):
        assert cpu == pytest.approx(told, rel=0.1)
    for before, after in ((bare.rss, usage.rss), (bare.tasks[0].rss, task.rss)):
        assert after - before == pytest.approx(100 * 1024, rel=0.1)
    assert 100 * 1024 <= usage.pss <= usage.rss == usage.max_mem
    assert (task.rank, task.pid, task.processes, task.state) == (0, pid, 1, "S")
    assert usage.pids == [pid]
    assert usage.pgids == [pid]
    assert (usage.key, usage.attempt, usage.at) == (101, 1, clock.now)


def test_peaks_and_the_mean_stay_when_the_part_is_over(part: Shepherded):
    pid = sleeper(part)
    sampler = UsageSampler(None, clock := Clock())
    rss = sample(sampler, part).rss
    clock.now += 10
    sample(sampler, part)
    os.kill(pid, 9)
    assert part.reap(pid) == 9
    clock.now += 5
    usage = sample(sampler, part)
    assert (usage.rss, usage.threads, list(usage.pids), usage.tasks[0].state) == (0, 0, [], "")
    peaks = sampler.peaks("uid")
    assert (peaks.processes, peaks.threads) == (1, 1)
    final = sampler.forget("uid")
    assert final is not None
    assert final.max_mem >= rss > 0
    assert 0 < final.avg_mem < final.max_mem
    assert sampler.forget("uid") is None
    assert sampler.peaks("uid").mem == 0


GROWS = """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
print("ready", flush=True)
signal.pause()
held = b"x" * (20 << 20)
print("grown", flush=True)
signal.pause()
"""

ENDED_CHILDREN = """
import os, signal, sys, time
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if child == 0:
    while time.process_time() < 1.0:
        sum(range(1000))
    print("child", time.process_time(), flush=True)
    signal.pause()
print("parent", child, flush=True)
try:
    os.waitpid(child, 0)
except ChildProcessError:
    pass
print("waited", flush=True)
signal.pause()
"""


@pytest.mark.parametrize("how", ["waited", "ignored"])
def test_the_time_of_ended_children_is_not_lost(part: Shepherded, how: str):
    part.python(ENDED_CHILDREN, how)
    wait_until(lambda: len(part.said()) == 2, WAIT, "the child to have burned")
    lines = dict(line.split() for line in part.said())
    sampler = UsageSampler(None)
    before = sample(sampler, part)
    assert before.tasks[0].processes == 2
    assert before.cpu >= float(lines["child"]) - 0.05
    os.kill(int(lines["parent"]), 9)
    wait_until(lambda: "waited" in part.said(), WAIT, "the parent to go on")
    for _ in range(3):
        after = sample(sampler, part)
        assert after.tasks[0].processes == 1
        assert before.cpu <= after.cpu <= before.cpu * 1.1
        assert after.tasks[0].cpu == after.cpu


def test_children_that_no_sample_saw_count_when_their_parent_waited(part: Shepherded):
    sampler = UsageSampler(None)
    sleeper(part)
    sample(sampler, part)
    text = ENDED_CHILDREN.replace("    signal.pause()\n", "    os._exit(0)\n")
    part.python(text, "waited")
    wait_until(lambda: "waited" in part.said(1), WAIT, "the child to end")
    usage = sample(sampler, part)
    assert usage.tasks[1].cpu >= 0.95
    assert usage.tasks[0].cpu < 0.9


ESCAPE = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1000"], {})
    os._exit(0)
os.wait()
print("escaped", flush=True)
signal.pause()
"""


def test_an_escapee_is_counted(part: Shepherded):
    """What double-forks, calls setsid and clears its environment is still found, also when its rank has ended."""
    pid = part.python(ESCAPE)
    wait_until(lambda: part.said() == ["escaped"], WAIT, "the escape")
    sampler = UsageSampler(None)
    usage = sample(sampler, part)
    (stray,) = set(usage.pids) - {pid}
    part.strays.append(stray)
    assert usage.tasks[0].processes == 2
    assert len(usage.pgids) == 2
    os.kill(pid, 9)
    part.reap(pid)
    usage = sample(sampler, part)
    assert list(usage.pids) == [stray]
    assert usage.tasks[0].processes == 1
    assert usage.tasks[0].state == ""


def test_sixty_four_ranks_in_one_look(part: Shepherded, tmp_path: Path):
    """Each of 64 ranks has its own figures; another part's processes are its own."""
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    for _ in range(64):
        part.start(["/bin/sleep", "1000"])
    with Shepherded(other_folder) as other:
        pid = other.start(["/bin/sleep", "1000"])
        sampler = UsageSampler(None)
        found = sampler.sample({"a": part.roots(), "b": other.roots()})
        assert [(task.rank, task.pid) for task in found["a"].tasks] == [(rank, pid) for rank, pid, _ in part.tasks]
        assert all(task.processes == 1 and task.rss > 0 and task.threads == 1 for task in found["a"].tasks)
        assert sum(task.rss for task in found["a"].tasks) == found["a"].rss
        assert len(found["a"].pids) == len(found["a"].pgids) == 64
        assert list(found["b"].pids) == [pid]


def test_a_process_that_was_passed_over_is_found_when_its_part_becomes_known(part: Shepherded, tmp_path: Path):
    sampler = UsageSampler(None)
    pid = part.python(ENDED_CHILDREN, "waited")
    wait_until(lambda: len(part.said()) == 2, WAIT, "two processes")
    assert sampler.sample({}) == {}
    assert len(sample(sampler, part).pids) == 2
    late = part.start(["/bin/sleep", "1000"])
    for _ in range(15):
        usage = sample(sampler, part)
        assert len(usage.pids) == 3
        assert {task.pid for task in usage.tasks} == {pid, late}


def test_pss_is_read_at_once_at_times_and_near_the_memory_limit(part: Shepherded):
    """PSS is there in the first sample; what grows in between counts in full."""
    part.python(GROWS)
    wait_until(lambda: part.said() == ["ready"], WAIT, "the rank to be ready")
    sampler = UsageSampler(None, clock := Clock())
    usage = sample(sampler, part)
    assert 0 < usage.pss == usage.tasks[0].pss <= usage.rss
    os.kill(part.tasks[0][1], signal.SIGUSR1)
    wait_until(lambda: len(part.said()) == 2, WAIT, "the rank to have grown")
    grown = sample(sampler, part)
    assert grown.pss - usage.pss == pytest.approx(grown.rss - usage.rss)
    shares = []
    for pause in (PSS_SECOND, PSS_EVERY - 1, 2.0):
        clock.now += pause
        shares.append(sample(sampler, part, memory_limit=100 * usage.rss).pss)
    assert all(0 < share <= grown.rss for share in shares)
    assert 0 < sample(sampler, part, memory_limit=grown.rss).pss <= grown.rss


def test_a_rank_that_is_gone_or_whose_pid_is_reused_is_no_error(part: Shepherded):
    pid = part.start(["/bin/sleep", "1000"])
    proc = read_proc(pid)
    assert proc is not None
    roots = part.roots()._replace(tasks=((0, pid, proc.start + 1), (1, 1 << 30, 5)), shepherd=0)
    usage = UsageSampler(None).sample({"uid": roots})["uid"]
    assert (list(usage.pids), usage.cpu, [task.state for task in usage.tasks]) == ([], 0.0, ["", ""])
