"""CPU sums: nothing lost, nothing twice, never back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.monitor.cputime import CpuPeak, CpuTime
from agent.monitor.procscan import Proc
from agent.monitor.tree import REST

SHEPHERD = 10


class World:
    """Processes that burn, fork, double-fork and end, with what they really used in ``truth``."""

    def __init__(self, served: int = 0) -> None:
        self.parent = {SHEPHERD: 1, 11: SHEPHERD, 12: SHEPHERD}
        self.own = {SHEPHERD: 7, 11: 0, 12: 0}
        self.reaped = {SHEPHERD: served, 11: 0, 12: 0}
        self.rank = {11: 0, 12: 1}
        self.deaf: set[int] = set()
        self.next = 13
        self.truth = 0

    def pids(self) -> list[int]:
        return sorted(self.parent)

    def pick(self, number: int) -> int | None:
        below = [pid for pid in self.pids() if pid != SHEPHERD]
        return below[number % len(below)] if below else None

    def act(self, verb: str, number: int, ticks: int) -> None:
        pid = self.pick(number)
        if pid is None:
            return
        if verb == "burn":
            self.own[pid] += ticks
            self.truth += ticks
        elif verb == "deaf":
            self.deaf.add(pid)
        elif verb == "end":
            self.end(pid)
        else:
            child, self.next = self.next, self.next + 1
            self.parent[child] = SHEPHERD if verb == "escape" else pid
            self.own[child] = self.reaped[child] = 0
            self.rank[child] = self.rank[pid]

    def end(self, pid: int) -> None:
        above = self.parent.pop(pid)
        used = self.own.pop(pid) + self.reaped.pop(pid)
        if above not in self.deaf:
            self.reaped[above] += used
        for child in [child for child, parent in self.parent.items() if parent == pid]:
            self.parent[child] = SHEPHERD

    def read(self, pid: int) -> Proc | None:
        if pid not in self.parent:
            return None
        return Proc(pid, "S", self.parent[pid], pid, pid, self.own[pid], self.reaped[pid], 1, pid, 1, False)


def look(world: World, time: CpuTime, between: list[tuple[str, int, int]] | None = None) -> dict[int, int]:
    """Read in rising order of pids, one act of ``between`` after each process, as a real scan is no snapshot."""
    procs: dict[int, Proc] = {}
    acts = list(between or ())
    for pid in world.pids():
        if (proc := world.read(pid)) is not None:
            procs[pid] = proc
        if acts:
            world.act(*acts.pop())
    members = {pid: world.rank[pid] for pid in procs if pid != SHEPHERD}
    return time.update(members, procs, SHEPHERD)


ACT = st.tuples(st.sampled_from(["burn", "burn", "burn", "fork", "escape", "end"]), st.integers(0, 9), st.integers(1, 99))
DEAF = st.tuples(st.sampled_from(["burn", "burn", "fork", "escape", "end", "deaf"]), st.integers(0, 9), st.integers(1, 99))


@given(st.lists(st.lists(ACT, max_size=8), max_size=12), st.integers(0, 1000))
def test_where_all_are_waited_for_the_sum_is_exact(rounds: list[list[tuple[str, int, int]]], served: int):
    world, time = World(served), CpuTime()
    look(world, time)
    for acts in rounds:
        for act in acts:
            world.act(*act)
        assert sum(look(world, time).values()) == world.truth


@given(st.lists(st.tuples(st.lists(DEAF, max_size=6), st.lists(DEAF, max_size=4)), max_size=12))
def test_never_back_and_never_more_than_was_used(rounds: list[tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]]):
    world, time = World(), CpuTime()
    before = look(world, time)
    for acts, between in rounds:
        for act in acts:
            world.act(*act)
        now = look(world, time, between)
        assert all(now[rank] >= ticks for rank, ticks in before.items())
        assert sum(now.values()) <= world.truth
        before = now


def test_a_debt_moves_on_with_the_one_that_owes_it():
    """Who waited for a child ends while others are read, and its parent was read before it waited for that one."""
    world, time = World(), CpuTime()
    world.act("fork", 1, 0)
    look(world, time)
    look(world, time, [("burn", 2, 1)])
    look(world, time, [("end", 2, 1), ("burn", 0, 1), ("burn", 0, 0)])
    look(world, time, [("end", 1, 1)])
    assert sum(look(world, time).values()) == world.truth


def test_what_came_to_the_shepherd_is_paid_by_it_before_others_pay():
    world, time = World(), CpuTime()
    for acts, between in (
        ([("fork", 0, 1), ("fork", 2, 1), ("burn", 3, 1)], [("escape", 1, 1)]),
        ([], [("end", 1, 1), ("escape", 4, 1)]),
        ([("end", 1, 1), ("fork", 0, 1)], [("end", 1, 1), ("burn", 4, 1)]),
        ([("end", 3, 1)], []),
        ([], []),
    ):
        for act in acts:
            world.act(*act)
        now = look(world, time, between)
        assert sum(now.values()) <= world.truth
    assert sum(now.values()) == world.truth


def test_a_child_that_nobody_waits_for_keeps_its_last_seen_time():
    world, time = World(), CpuTime()
    look(world, time)
    world.act("deaf", 0, 0)
    world.act("fork", 0, 0)
    world.own[13] = 50
    assert look(world, time)[0] == 50
    world.end(13)
    assert look(world, time)[0] == 50
    assert look(world, time)[0] == 50


def test_a_task_that_ends_keeps_its_time_in_its_rank():
    world, time = World(served=5000), CpuTime()
    look(world, time)
    world.own[11] = 100
    look(world, time)
    world.own[11] = 130
    world.end(11)
    assert look(world, time) == {0: 130, 1: 0, REST: 0}


def test_a_parent_read_just_before_it_waits_counts_the_child_once():
    world, time = World(), CpuTime()
    world.act("fork", 0, 0)
    world.own[13] = 70
    look(world, time)
    parent = world.read(11)
    assert parent is not None
    world.end(13)
    procs = {pid: proc for pid in world.pids() if (proc := world.read(pid)) is not None} | {11: parent}
    assert sum(time.update({11: 0, 12: 1}, procs, SHEPHERD).values()) == 70
    assert sum(look(world, time).values()) == 70


def test_a_process_whose_rank_is_learnt_later_takes_its_time_along():
    world, time = World(), CpuTime()
    world.rank[12] = REST
    look(world, time)
    world.own[12] = 40
    assert look(world, time) == {0: 0, REST: 40}
    world.rank[12] = 1
    assert look(world, time) == {0: 0, REST: 0, 1: 40}


def test_a_debt_that_comes_to_the_shepherd_a_look_later_counts_once():
    """Its parent had ended, it ended during a look that had read the shepherd already, and the shepherd reaped it."""
    world, time = World(), CpuTime()
    world.act("fork", 0, 1)
    world.act("fork", 2, 1)
    look(world, time)
    world.own[14], world.truth = 1, 1
    assert sum(look(world, time).values()) == 1
    world.end(13)
    procs = {pid: proc for pid in world.pids() if pid != 14 and (proc := world.read(pid)) is not None}
    world.end(14)
    time.update({pid: world.rank[pid] for pid in procs if pid != SHEPHERD}, procs, SHEPHERD)
    assert sum(look(world, time).values()) == 1


def test_growth_that_pays_a_debt_is_not_given_to_a_rank_as_well():
    """Two end between looks: one that the shepherd came to have, and one that was its own child and used nothing."""
    world, time = World(), CpuTime()
    world.act("fork", 1, 1)
    world.act("fork", 2, 1)
    world.act("escape", 1, 1)
    world.own[14], world.truth = 1, 1
    look(world, time)
    for pid in (13, 14, 15):
        world.end(pid)
    assert sum(look(world, time).values()) == 1


def test_the_peak_is_of_a_span_and_says_when_it_was() -> None:
    peak = CpuPeak(100.0)
    for now, cpu in ((105.0, 20.0), (110.0, 20.0), (115.0, 21.0), (121.0, 53.0), (140.0, 60.0)):
        peak.see(now, cpu)
    assert (peak.cpus, peak.after) == (3.0, 21.0)  # 33 s in 11 s; the 20 s in the first 5 s are 2 CPUs over their span
