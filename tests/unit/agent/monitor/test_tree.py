"""Which process belongs to which part and rank."""

from __future__ import annotations

from agent.monitor.procscan import Proc
from agent.monitor.tree import REST, Owner, PartRoots, assign


def proc(pid: int, ppid: int, pgrp: int = 0, session: int = 0, start: int = 1) -> Proc:
    return Proc(pid, "S", ppid, pgrp or pid, session or pid, 0, 0, 1, start, 100, False)


def world(*procs: Proc) -> dict[int, Proc]:
    return {one.pid: one for one in (proc(1, 0), *procs)}


def roots(shepherd: int, *tasks: tuple[int, int]) -> PartRoots:
    return PartRoots(101, 1, tuple((rank, pid, 1) for rank, pid in tasks), shepherd)


def test_descent_decides_part_and_rank():
    procs = world(proc(10, 1), proc(11, 10), proc(12, 10), proc(13, 11), proc(14, 13), proc(20, 1), proc(21, 20))
    found = assign(procs, {"a": roots(10, (0, 11), (1, 12)), "b": roots(20, (0, 21))}, {})
    assert found.members == {"a": {11: 0, 12: 1, 13: 0, 14: 0}, "b": {21: 0}}
    assert found.foreign == {1}


def test_an_orphan_of_several_ranks_belongs_to_the_part_and_keeps_the_rank_of_its_group():
    procs = world(proc(10, 1), proc(11, 10), proc(12, 10), proc(15, 10), proc(16, 10, pgrp=12), proc(17, 10, 18, 11))
    found = assign(procs, {"a": roots(10, (0, 11), (1, 12))}, {})
    assert found.members["a"] == {11: 0, 12: 1, 15: REST, 16: 1, 17: 0}


def test_an_orphan_of_the_only_rank_is_of_that_rank():
    found = assign(world(proc(10, 1), proc(11, 10), proc(15, 10)), {"a": roots(10, (3, 11))}, {})
    assert found.members["a"] == {11: 3, 15: 3}


def test_once_seen_in_a_rank_is_kept_when_parents_are_gone():
    known = {(15, 1): Owner("a", 1)}
    found = assign(world(proc(15, 1), proc(16, 15)), {"a": roots(10, (0, 11), (1, 12))}, known)
    assert found.members["a"] == {15: 1, 16: 1}
    assert found.foreign == {1}


def test_a_reused_pid_is_not_kept():
    known = {(15, 1): Owner("a", 1)}
    procs = world(proc(15, 1, start=2), proc(12, 1, start=7))
    found = assign(procs, {"a": roots(10, (1, 12))}, known)
    assert found.members["a"] == {}
    assert found.foreign == {1, 12, 15}


def test_what_was_of_a_forgotten_part_is_nobodys():
    assert assign(world(proc(15, 1)), {}, {(15, 1): Owner("gone", 0)}).foreign == {1, 15}


def test_a_task_below_another_task_is_a_rank_of_its_own():
    procs = world(proc(10, 1), proc(11, 10), proc(12, 11), proc(13, 12))
    assert assign(procs, {"a": roots(10, (0, 11), (1, 12))}, {}).members["a"] == {11: 0, 12: 1, 13: 1}


def test_a_rank_learnt_later_wins_over_no_rank():
    procs = world(proc(10, 1), proc(11, 10), proc(12, 10), proc(13, 12))
    known = {(pid, 1): Owner("a", REST) for pid in (12, 13)}
    assert assign(procs, {"a": roots(10, (0, 11), (1, 12))}, known).members["a"] == {11: 0, 12: 1, 13: 1}


def test_below_a_process_that_was_passed_over_is_foreign_and_below_one_that_went_away_is_not_known():
    found = assign({31: proc(31, 30), 41: proc(41, 40)}, {}, {}, skipped={30})
    assert found.foreign == {31}


def test_a_circle_ends():
    assert assign({5: proc(5, 6), 6: proc(6, 5)}, {}, {}).foreign == set()
