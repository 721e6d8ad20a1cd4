"""bswitch and bmod -q: whether a queue takes a job is a matter of the job's owner, whoever moves it."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare, TaskLimit
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Modify, Refused, Select, Switch
from lavad.core.lang.ranges import Ranges
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ADMIN, ALICE, BOB, LOCAL, Bench

SHARED = QueueConfig(name="shared", share=FairShare(shares=(("alice", 3), ("bob", 1))))
OF_ALICE = QueueConfig(name="ours", users=("alice",))
NO_SHARE = "shared: User cannot use the queue: eve has no share of it"
EVE = Caller(user="eve", uid=1005, host="h1")


@pytest.fixture
def site(bench: Bench) -> Bench:
    bench.queues(QueueConfig(name="normal"), SHARED, OF_ALICE)
    bench.configure(user_groups=(("dev", ("alice", "bob", "eve")),), params=Params(user_group_admins=(("dev", ("bob", "eve")),)))
    return bench


def moved(bench: Bench, owner: Caller, queue: str, mover: Caller, by_bmod: bool) -> str:
    """The queue of a job of ``owner`` that ``mover`` moves, or why it was refused."""
    job = str(bench.bsub(owner, q="normal")["job"])
    if not by_bmod:
        [(_, refusal)] = bench.asked(switch, Switch(queue=queue, jobs=Select(ids=[job])), mover)
        return refusal or bench.cluster.spec_of(int(job)).queue
    try:
        bench.take(modify(bench.cluster, Modify(job=job, options={"q": queue}), JobText(command="c"), mover, bench.now, LOCAL))
    except Refused as why:
        return why.text
    return bench.cluster.spec_of(int(job)).queue


@pytest.mark.parametrize("by_bmod", [False, True])
@pytest.mark.parametrize(
    ("owner", "queue", "mover", "wanted"),
    [
        (ALICE, "shared", ADMIN, "shared"),
        (ALICE, "shared", EVE, "shared"),
        (ALICE, "shared", ALICE, "shared"),
        (EVE, "shared", ADMIN, NO_SHARE),
        (EVE, "shared", BOB, NO_SHARE),
        (EVE, "shared", EVE, NO_SHARE),
        (ALICE, "ours", BOB, "ours"),
        (EVE, "ours", BOB, "ours: User cannot use the queue"),
        (EVE, "ours", ADMIN, "ours"),
    ],
)
def test_the_owner_has_to_have_the_right_and_the_share(
    site: Bench, owner: Caller, queue: str, mover: Caller, wanted: str, by_bmod: bool
) -> None:
    assert moved(site, owner, queue, mover, by_bmod) == wanted


BIG = QueueConfig(name="big", res_req="rusage[mem=40,swp=5]")


@pytest.mark.parametrize(
    ("wanted", "own", "queue", "found"),
    [
        (False, "", "big", (("mem", 10.0),)),
        (True, "", "big", (("mem", 40.0), ("swp", 5.0))),
        (True, "rusage[mem=7]", "big", (("mem", 7.0), ("swp", 5.0))),
        (True, "", "plain", ()),
    ],
)
def test_what_a_job_that_runs_reserves_in_its_new_queue(
    bench: Bench, wanted: bool, own: str, queue: str, found: tuple[tuple[str, float], ...]
) -> None:
    bench.queues(QueueConfig(name="normal", res_req="rusage[mem=10]"), BIG, QueueConfig(name="plain"))
    bench.configure(params=Params(bswitch_modify_rusage=wanted))
    key = bench.started(q="normal", **({"R": own} if own else {}))
    [(_, refusal)] = bench.asked(switch, Switch(queue=queue, jobs=Select(ids=[str(key)])), ADMIN)
    run = bench.job(key).run
    assert run is not None
    assert (refusal, bench.cluster.spec_of(key).queue, run.parts[0].reserved) == ("", queue, found)
    assert bench.cluster.use.hosts[run.parts[0].host].reserved == dict(found)
    assert run.queue == ("" if wanted else "normal")
    assert [refusal for _, refusal in bench.asked(switch, Switch(queue="normal", jobs=Select(ids=[str(key)])), ADMIN)] == [""]
    assert getattr(bench.job(key).run, "queue", None) == ""


def test_a_queue_that_asks_for_the_same_changes_nothing(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", res_req="rusage[mem=10]"), QueueConfig(name="like", res_req="rusage[mem=10]"))
    bench.configure(params=Params(bswitch_modify_rusage=True))
    key = bench.started(q="normal")
    asked = Switch(queue="like", jobs=Select(ids=[str(key)]))
    assert [type(event).__name__ for event in switch(bench.cluster, asked, ADMIN, bench.now).events] == [
        "SpecAdded",
        "JobSwitched",
    ]


@pytest.mark.parametrize("ids", ["1", "1[2]", "1[1-2]"])
def test_elements_of_an_array_stay_where_a_queue_does_not_take_them(site: Bench, ids: str) -> None:
    site.submit(array="1-3", queue="normal", user="eve")
    asked = Switch(queue="ours", jobs=Select(ids=[ids]))
    assert {why for _, why in site.asked(switch, asked, EVE)} == {"ours: User cannot use the queue"}
    assert site.cluster.arrays.rows[1].pending == Ranges.span(1, 3)


@pytest.mark.parametrize(("queue", "refusal"), [("full", ""), ("also", "Queue does not have enough per-user job slots")])
def test_a_job_that_is_in_a_full_queue_already_may_stay(bench: Bench, queue: str, refusal: str) -> None:
    bench.queues(QueueConfig(name="full", ujob_limit=1), QueueConfig(name="also", ujob_limit=1))
    key, _ = bench.started(q="full"), bench.started(q="also")
    assert bench.asked(switch, Switch(queue=queue, jobs=Select(ids=[str(key)]))) == [(str(key), refusal)]


def test_a_job_keeps_the_slots_that_it_had(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="wide", tasklimit=TaskLimit(minimum=1, default=2, maximum=4)))
    key = bench.bsub(q="normal")["job"]
    assert bench.asked(switch, Switch(queue="wide", jobs=Select(ids=[str(key)]))) == [(str(key), "")]
    assert (bench.cluster.spec_of(key).slots, bench.spec_of(q="wide").slots) == (1, 2)
