"""Administrators on a host that is not in LAVA_ADMIN_HOSTS are told why they may not, anybody else only that they may not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core.decide.base.groups import add_group, change_group, drop_group
from lavad.core.decide.control import control, messages
from lavad.core.decide.control.queues import switch_queues
from lavad.core.decide.modify.position import move
from lavad.core.lang import asks
from lavad.core.lang.asks import Caller, Refused, Select
from tests.support.worlds.bench import ADMIN, ALICE, BOB, LOCAL, Bench

DENIED = "User permission denied"
WHY = f"{DENIED}: administrators have their rights on LAVA_ADMIN_HOSTS only"
ELSEWHERE = replace(ADMIN, may_administer=False)
DEPUTY = Caller(user="deputy", uid=1003, host="h1", may_administer=False)
"""Administers the queue and the group of users."""
WHO = pytest.mark.parametrize(("caller", "why"), [(BOB, DENIED), (ELSEWHERE, WHY)])


@pytest.fixture
def bench() -> Bench:
    b = Bench()
    b.configure(queues=(QueueConfig(name="normal", priority=30, users=("alice",)),))
    return b


@WHO
@pytest.mark.parametrize(
    ("decide", "ask"),
    [
        (control.kill, asks.Kill),
        (control.stop, asks.Stop),
        (control.resume, asks.Resume),
        (control.requeue, asks.Requeue),
        (control.migrate, asks.Migrate),
    ],
)
def test_controls_of_jobs(bench: Bench, caller: Caller, why: str, decide: Any, ask: Any) -> None:
    key = bench.placed(rerunnable=True)
    array = int(bench.bsub(J="a[1-3]")["job"])
    assert bench.asked(decide, ask(jobs=Select(ids=[str(key)])), caller) == [(str(key), why)]
    if decide in (control.kill, control.stop):
        assert bench.asked(decide, ask(jobs=Select(ids=[str(array)])), caller) == [(str(array), why)]


@WHO
def test_one_job_is_named(bench: Bench, caller: Caller, why: str) -> None:
    key = str(bench.placed("PEND"))
    with pytest.raises(Refused, match=f"^{why}$"):
        move(bench.cluster, asks.Move(job=key, top=True, place=1), caller, bench.now)
    with pytest.raises(Refused, match=f"^{why}$"):
        messages.post(bench.cluster, asks.Post(job=key, text="a"), caller, bench.now)


@WHO
def test_what_another_has_stopped(bench: Bench, caller: Caller, why: str) -> None:
    key = bench.placed(user=caller.user)
    bench.asked(control.stop, asks.Stop(jobs=Select(ids=[str(key)])), ADMIN if caller is BOB else Caller("root", 0, "h1"))
    assert bench.asked(control.resume, asks.Resume(jobs=Select(ids=[str(key)])), caller) == [(str(key), why)]


@WHO
def test_groups_of_jobs(bench: Bench, caller: Caller, why: str) -> None:
    bench.take(add_group(bench.cluster, asks.AddGroup(group="/a"), ALICE, bench.now))
    with pytest.raises(Refused, match=f"^{why}.$"):
        drop_group(bench.cluster, asks.DropGroup(group="/a"), caller, bench.now)
    with pytest.raises(Refused, match=f"^{why}.$"):
        change_group(bench.cluster, asks.ChangeGroup(group="/a", limit=3), caller, bench.now)


def test_administrators_of_a_queue_and_of_a_group_of_users(bench: Bench) -> None:
    key = str(bench.placed("PEND"))
    stop = asks.Stop(jobs=Select(ids=[key]))
    assert bench.asked(control.stop, stop, DEPUTY) == [(key, DENIED)]
    bench.configure(queues=(QueueConfig(name="normal", priority=30, administrators=("deputy",)),))
    assert bench.asked(control.stop, stop, DEPUTY) == [(key, WHY)]
    closed = switch_queues(bench.cluster, asks.Queues(queues=["normal"], what="qclose"), DEPUTY, bench.now, LOCAL)
    assert closed.answer["results"] == [{"queue": "normal", "ok": False, "why": WHY}]
    bench.configure(queues=(QueueConfig(name="normal", priority=30),), user_groups=(("lab", ("alice",)),))
    assert bench.asked(control.stop, stop, DEPUTY) == [(key, DENIED)]
    bench.configure(params=replace(bench.cluster.conf.params, user_group_admins=(("lab", ("deputy",)),)))
    assert bench.asked(control.stop, stop, DEPUTY) == [(key, WHY)]


def test_everybody_s_jobs_are_for_administrators(bench: Bench) -> None:
    bench.placed("PEND")
    stop = asks.Stop(jobs=Select(ids=["0"], user="all"))
    none = {who.user: control.stop(bench.cluster, stop, who, bench.now).answer["none"] for who in (BOB, ELSEWHERE)}
    assert none == {"bob": "No matching job found", "boss": WHY.replace(DENIED, "No matching job found")}
    again = asks.Requeue(jobs=Select(user="all"), states=["RUN"])
    assert control.requeue(bench.cluster, again, ELSEWHERE, bench.now).answer["none"] == none["boss"]


def test_a_queue_for_others(bench: Bench) -> None:
    for caller, why in (BOB, ""), (ELSEWHERE, WHY.removeprefix(DENIED)):
        with pytest.raises(Refused, match=f"^normal: User cannot use the queue{why}$"):
            bench.bsub(caller)
