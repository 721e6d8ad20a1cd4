"""bmod, bswitch, btop and bbot; and badmin's queue verbs."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import QueueConfig
from config.model.values import TaskLimit
from lavad.core.decide.base import bulk
from lavad.core.decide.control.control import migrate
from lavad.core.decide.control.queues import switch_queues
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.position import move
from lavad.core.decide.modify.switch import switch
from lavad.core.job.job import Array
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Migrate, Modify, Move, OptionValue, Queues, Refused, Select, Switch
from lavad.core.lang.ids import key_of
from tests.support.worlds.bench import ADMIN, ALICE, BOB, LOCAL, Bench

TEXT = JobText(command="old", output="out")


def bmod(
    bench: Bench, job: object, caller: Caller = ALICE, command: str = "", text: JobText = TEXT, **options: OptionValue
) -> JobText:
    """The new text; ``text``: that of before."""
    ask = Modify(job=str(job), options=dict(options), command=command)
    decided = modify(bench.cluster, ask, text, caller, bench.now, LOCAL)
    bench.take(decided)
    return decided.texts[0][1]


def reset(option: str) -> dict[str, Any]:
    """The form of bmod that takes an option back."""
    return {f"{option}n": True}


def bmove(bench: Bench, job: object, top: bool = True, place: int = 1, caller: Caller = ALICE) -> None:
    bench.take(move(bench.cluster, Move(job=str(job), top=top, place=place), caller, bench.now))


def order(bench: Bench) -> list[int]:
    """Who stands where in the line: one slot after the other."""
    for host in ("h2", "h3"):
        if host in bench.cluster.hosts.rows:
            bench.host_switch(host, closed=True)
    bench.hosts("h1", slots=1)
    placed: list[int] = []
    while bench.pending():
        [(key, _)] = bench.step().items()
        placed.append(key)
        bench.finish(key)
        bench.now += 1
    return placed


@pytest.mark.parametrize(
    ("option", "value", "field", "wanted", "cleared"),
    [
        ("n", "3", "slots", 3, 1),
        ("R", "rusage[mem=5]", "resreq", None, ""),
        ("m", "h1", "hosts", ("h1",), ()),
        ("x", True, "exclusive", True, False),
        ("r", True, "rerunnable", True, False),
        ("b", "13:00", "begin", None, 0.0),
        ("t", "13:00", "deadline", None, 0.0),
        ("G", "g", "user_group", "g", ""),
    ],
)
def test_an_option_and_its_reset(bench: Bench, option: str, value: Any, field: str, wanted: object, cleared: object) -> None:
    bench.queues(QueueConfig(name="normal", exclusive=True))
    key = bench.bsub()["job"]
    bmod(bench, key, **{option: value})
    now = getattr(bench.cluster.spec_of(key), field)
    assert now == wanted if wanted is not None else now != cleared
    bmod(bench, key, **reset(option))
    assert getattr(bench.cluster.spec_of(key), field) == cleared


@pytest.mark.parametrize(("option", "field"), [("W", "run"), ("c", "cpu"), ("M", "mem"), ("v", "swap"), ("p", "processes")])
def test_a_limit_and_its_reset(bench: Bench, option: str, field: str) -> None:
    key = bench.bsub()["job"]
    limit: dict[str, Any] = {option: "5"}
    bmod(bench, key, **limit)
    assert getattr(bench.cluster.spec_of(key).limits, field)
    bmod(bench, key, **reset(option))
    assert getattr(bench.cluster.spec_of(key).limits, field) is None


def test_text_and_command(bench: Bench) -> None:
    key = bench.bsub()["job"]
    assert bmod(bench, key, o="new").output == "new"
    assert bmod(bench, key, on=True).output == ""
    assert bmod(bench, key, command="new").command == "new"


@pytest.mark.parametrize("state", ["RUN", "USUSP", "SSUSP", "UNKWN"])
def test_a_started_job_is_not_changed(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    with pytest.raises(Refused, match="Job parameters cannot be changed now; non-repetitive job is running"):
        bmod(bench, key, n="2")


@pytest.mark.parametrize(
    ("job", "text"), [("99", "99: No matching job found"), ("x", "x: Illegal job ID"), ("0", "0: No matching job found")]
)
def test_what_cannot_be_named(bench: Bench, job: str, text: str) -> None:
    for do in (lambda: bmod(bench, job, n="2"), lambda: bmove(bench, job)):
        with pytest.raises(Refused) as raised:
            do()
        assert raised.value.text == text


@pytest.mark.parametrize("caller", [BOB, ADMIN])
def test_rights(bench: Bench, caller: Caller) -> None:
    key = bench.bsub()["job"]
    if caller is ADMIN:
        bmod(bench, key, caller, n="2")
        bmove(bench, key, caller=caller)
        return
    for do in (lambda: bmod(bench, key, caller, n="2"), lambda: bmove(bench, key, caller=caller)):
        with pytest.raises(Refused, match="User permission denied"):
            do()


def test_a_bad_value_changes_nothing(bench: Bench) -> None:
    key = bench.bsub()["job"]
    before = bench.cluster.version
    with pytest.raises(Refused, match="positive integer"):
        bmod(bench, key, W="5", n="x")
    assert bench.cluster.version == before


@pytest.mark.parametrize(
    ("name", "array", "element", "limit"),
    [("new", "new", "new[2]", 0), ("new[1-4]", "new", "new[2]", 0), ("new[1-4]%2", "new", "new[2]", 2), ("%3", "a", "a[2]", 3)],
)
def test_a_new_name_of_an_array(bench: Bench, name: str, array: str, element: str, limit: int) -> None:
    job = bench.bsub(J="a[1-4]")["job"]
    bench.asked(switch, Switch(queue="night", jobs=Select(ids=[f"{job}[2]"])))
    bmod(bench, job, J=name)
    row = bench.cluster.arrays.rows[job]
    assert (row.name, row.limit) == (array, limit)
    assert bench.job(key_of(job, 2)).name == element


@pytest.mark.parametrize("name", ["new[1-5]", "new[", "new[1-4]%0"])
def test_indices_never_change(bench: Bench, name: str) -> None:
    job = bench.bsub(J="a[1-4]")["job"]
    with pytest.raises(Refused, match="Bad job name"):
        bmod(bench, job, J=name)


def test_a_job_does_not_become_an_array(bench: Bench) -> None:
    key = bench.bsub(J="a")["job"]
    with pytest.raises(Refused, match="Bad job name"):
        bmod(bench, key, J="a[1-4]")


def test_bswitch_of_a_job_an_element_and_an_array(bench: Bench) -> None:
    key, job = bench.bsub()["job"], bench.bsub(J="a[1-4]")["job"]
    answer = bench.asked(switch, Switch(queue="night", jobs=Select(ids=[str(key), f"{job}[2]"])))
    assert [why for _, why in answer] == ["", ""]
    assert bench.cluster.spec_of(key).queue == bench.cluster.spec_of(key_of(job, 2)).queue == "night"
    assert bench.cluster.spec_of(job).queue == "normal"
    bench.asked(switch, Switch(queue="night", jobs=Select(ids=[str(job)])))
    assert bench.cluster.spec_of(job).queue == "night"


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        (QueueConfig(name="other", users=("bob",)), "other: User cannot use the queue"),
        (QueueConfig(name="other", ujob_limit=1), "Queue does not have enough per-user job slots"),
        (QueueConfig(name="other", tasklimit=TaskLimit(maximum=1)), "Too many processors requested"),
    ],
)
def test_a_queue_that_does_not_take_it(bench: Bench, queue: QueueConfig, why: str) -> None:
    bench.queues(QueueConfig(name="normal"), queue)
    key = bench.bsub(n="2")["job"]
    assert bench.asked(switch, Switch(queue="other", jobs=Select(ids=[str(key)]))) == [(str(key), why)]


def test_started_jobs_are_held_to_the_user_limit_of_the_queue_first(bench: Bench) -> None:
    """Before USERS and all else of the queue, each with what the command brought before it."""
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="other", ujob_limit=2, users=("bob",)))
    keys = [bench.placed(), bench.placed(slots=2), bench.placed()]
    ask = Switch(queue="other", jobs=Select(ids=[str(key) for key in keys]))
    room, slots = "other: User cannot use the queue", "Queue does not have enough per-user job slots"
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="other", ujob_limit=1, users=("bob",)))
    assert bench.asked(switch, ask) == [(str(keys[0]), room), (str(keys[1]), slots), (str(keys[2]), room)]
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="other", ujob_limit=3))
    assert [why for _, why in bench.asked(switch, ask)] == ["", "", slots]


def test_a_part_of_a_switch_that_is_decided_again_finds_the_room_that_it_took(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it could not be stored; the parts of one moment have taken no more than the cluster counts, too."""
    monkeypatch.setattr(bulk, "AT_ONCE", 1)
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="other", ujob_limit=3))
    keys = [bench.placed() for _ in range(3)]
    ask = Switch(queue="other", jobs=Select(ids=[str(key) for key in keys]))
    part = switch(bench.cluster, ask, ALICE, bench.now)
    while part.more is not None:
        assert part.events
        bench.apply(*part.events)
        again = part.more(bench.cluster, bench.now)
        again = part.more(bench.cluster, bench.now)
        part = part.more(bench.cluster, bench.now)
        assert again.events == part.events
    assert [row["why"] for row in part.answer["results"]] == ["", "", ""]


@pytest.mark.parametrize(("state", "made"), [("PEND", True), ("RUN", False)])
def test_a_job_that_comes_to_a_rerunnable_queue(bench: Bench, state: str, made: bool) -> None:
    """One that waits becomes rerunnable; one that runs has no lease and may be migrated, but never runs again by itself."""
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="fair", rerunnable=True))
    key = bench.placed(state)
    assert bench.asked(migrate, Migrate(jobs=Select(ids=[str(key)])))[0][1] != ""
    bench.asked(switch, Switch(queue="fair", jobs=Select(ids=[str(key)])))
    assert bench.cluster.spec_of(key).rerunnable == made
    if state == "RUN":
        assert bench.asked(migrate, Migrate(jobs=Select(ids=[str(key)]))) == [(str(key), "")]


def test_elements_that_are_named_are_answered_one_by_one(bench: Bench) -> None:
    """As in LSF; an index list of more than a hundred gets one answer."""
    job, large = bench.bsub(J="a[1-4]")["job"], bench.bsub(J="b[1-200]")["job"]
    ids = [f"{job}[2-3,9]", f"{large}[1-98]"]
    answer = bench.asked(switch, Switch(queue="night", jobs=Select(ids=ids)))
    wanted = [(f"{job}[2]", ""), (f"{job}[3]", ""), (f"{job}[9]", "No matching job found"), (f"{large}[1-98]", "")]
    assert answer == wanted
    assert bench.cluster.spec_of(key_of(large, 98)).queue == "night"


def test_no_such_queue(bench: Bench) -> None:
    with pytest.raises(Refused, match="nosuch: No such queue"):
        switch(bench.cluster, Switch(queue="nosuch", jobs=Select(ids=["1"])), ALICE, bench.now)


@pytest.mark.parametrize(
    ("job", "top", "place", "wanted"),
    [
        (4, True, 1, [4, 1, 2, 3]),
        (4, True, 2, [1, 4, 2, 3]),
        (4, True, 3, [1, 2, 4, 3]),
        (4, True, 4, [1, 2, 3, 4]),
        (1, True, 3, [2, 3, 1, 4]),
        (1, True, 99, [2, 3, 4, 1]),
        (1, False, 1, [2, 3, 4, 1]),
        (1, False, 2, [2, 3, 1, 4]),
        (4, False, 3, [1, 4, 2, 3]),
        (2, False, 4, [2, 1, 3, 4]),
        (3, True, 0, [3, 1, 2, 4]),
    ],
)
def test_btop_and_bbot(bench: Bench, job: int, top: bool, place: int, wanted: list[int]) -> None:
    for _ in range(4):
        bench.submit()
    bmove(bench, job, top, place)
    assert order(bench) == wanted


def test_moves_one_after_the_other(bench: Bench) -> None:
    for _ in range(4):
        bench.submit()
    bmove(bench, 4)
    bmove(bench, 3)
    bmove(bench, 2, place=2)
    assert order(bench) == [3, 2, 4, 1]


def test_an_array_of_which_some_run_moves_with_what_waits(bench: Bench) -> None:
    first = bench.submit()
    job = bench.submit(array="1-20")
    bench.step()
    assert bench.cluster.elements[job]
    assert bench.job(first).state.name == "RUN"
    bmove(bench, job)
    row = bench.cluster.arrays.rows[job]
    assert isinstance(row, Array)
    assert row.queue_time > 0


@pytest.mark.parametrize("state", ["RUN", "USUSP"])
def test_a_started_job_is_not_moved(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    with pytest.raises(Refused, match=f"{key}: Job has already started"):
        bmove(bench, key)


@pytest.mark.parametrize(
    ("what", "open_", "active"), [("qclose", False, True), ("qinact", True, False), ("qopen", True, True), ("qact", True, True)]
)
def test_queue_verbs(bench: Bench, what: str, open_: bool, active: bool) -> None:
    bench.take(switch_queues(bench.cluster, Queues(queues=["night"], what=what), ADMIN, bench.now, LOCAL))
    row = bench.cluster.queue_state("night")
    assert (row.open, row.active) == (open_, active)


CLOSED = "Not activated because queue windows are closed"


@pytest.mark.parametrize(("window", "why"), [("0:00-23:59", ""), ("23:58-23:59", CLOSED)])
def test_a_queue_whose_windows_are_closed_is_not_activated(bench: Bench, window: str, why: str) -> None:
    bench.queues(QueueConfig(name="normal"), QueueConfig(name="night", run_window=window))
    bench.take(switch_queues(bench.cluster, Queues(queues=["night"], what="qinact"), ADMIN, bench.now, LOCAL))
    decided = switch_queues(bench.cluster, Queues(queues=["night"], what="qact"), ADMIN, bench.now, LOCAL)
    bench.take(decided)
    assert decided.answer["results"] == [{"queue": "night", "ok": not why, "why": why}]
    assert bench.cluster.queue_state("night").active == (not why)


def test_queue_verbs_stop_at_the_first_that_is_refused(bench: Bench) -> None:
    decided = switch_queues(bench.cluster, Queues(queues=["night", "nosuch", "normal"], what="qclose"), ADMIN, bench.now, LOCAL)
    assert [row["why"] for row in decided.answer["results"]] == ["", "No such queue"]
    assert len(decided.events) == 1
    decided = switch_queues(bench.cluster, Queues(queues=["all"], what="qclose"), BOB, bench.now, LOCAL)
    assert decided.answer["results"][0]["why"] == "User permission denied"
    assert decided.events == []


def test_input_that_was_spooled_gives_way(bench: Bench) -> None:
    key = bench.bsub(H=True)["job"]
    spooled = JobText(command="c", input="in", input_data="aGk=", copies=("a > b",))
    for option, value, wanted in (
        ("i", "other", ("other", "", ("a > b",))),
        ("fn", True, ("in", "aGk=", ())),
        ("isn", True, ("", "", ("a > b",))),
    ):
        ask = Modify(job=str(key), options={option: value})
        text = modify(bench.cluster, ask, spooled, ALICE, bench.now, LOCAL).texts[0][1]
        assert (text.input, text.input_data, text.copies) == wanted


@pytest.mark.parametrize(
    ("job", "top", "at", "wanted"),
    [
        (5, True, 1, [5, 2, 1, 4, 3, 6]),
        (3, True, 1, [3, 2, 1, 4, 5, 6]),
        (5, True, 2, [1, 2, 5, 4, 3, 6]),
        (5, False, 1, [1, 2, 3, 4, 5, 6]),
        (1, False, 1, [2, 3, 4, 5, 1, 6]),
        (1, False, 2, [2, 3, 1, 4, 5, 6]),
    ],
)
def test_a_user_moves_among_their_own_jobs_only(bench: Bench, job: int, top: bool, at: int, wanted: list[int]) -> None:
    """1, 3 and 5 are alice's."""
    for caller in (ALICE, BOB, ALICE, BOB, ALICE, BOB):
        bench.now += 1
        bench.bsub(caller=caller)
    bmove(bench, job, top, at)
    assert order(bench) == wanted


def test_an_array_overtakes_nobody_in_the_place_of_one_job(bench: Bench) -> None:
    for caller, name in ((ALICE, "one"), (BOB, "his"), (ALICE, "a[1-3]")):
        bench.now += 1
        bench.bsub(caller=caller, J=name)
    bmove(bench, 3)
    assert order(bench) == [2, key_of(3, 1), key_of(3, 2), key_of(3, 3), 1]


def test_one_record_changes_where_no_other_user_is_overtaken(bench: Bench) -> None:
    for _ in range(50):
        bench.now += 1
        bench.bsub()
    decided = move(bench.cluster, Move(job="50", top=True, place=1), ALICE, bench.now)
    assert len(decided.events) == 1
    bench.take(decided)
    assert order(bench)[:3] == [50, 1, 2]


def test_a_queue_without_exclusive_jobs_gets_none_by_bmod(bench: Bench) -> None:
    key = bench.bsub()["job"]
    with pytest.raises(Refused, match="normal: Queue does not accept EXCLUSIVE jobs"):
        bmod(bench, key, x=True)


def test_a_job_does_not_wait_for_itself(bench: Bench) -> None:
    first, second = bench.bsub()["job"], bench.bsub(J="me")["job"]
    bmod(bench, second, w=f"done({first})")
    for condition in (f"ended({second})", f'done({first}) && ended("me")'):
        with pytest.raises(Refused, match="A job cannot wait for itself"):
            bmod(bench, second, w=condition)
