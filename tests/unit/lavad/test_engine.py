"""The engine over a real SQLite store: one commit for all that waits, and what callers are told when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events.base import FOLDS
from lavad.core.job.job import Placed
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Faulty, Refused
from lavad.core.site.conf import Conf, Params
from lavad.core.site.host import Facts
from lavad.engine import Engine
from lavad.store.errors import OutcomeUnknown, StoreAway, StoreFull, StoreRefused
from lavad.store.load import load
from lavad.store.refusals import Away
from lavad.store.writer import Store
from proto.answers import Answer
from tests.support.worlds.office import Office, bsub, fail, gather, nothing, refuse, unwritable
from tests.support.worlds.snapshot import snapshot


def test_all_that_waits_is_one_commit(office: Office) -> None:
    answers = office.serve(lambda engine: gather(*(engine.ask(bsub, f"u{n}") for n in range(50))))
    assert [answer["job"] for answer in answers] == list(range(1, 51))
    assert len(office.store.batches) == 1
    assert [len(told.changed) for told in office.told] == [50]
    office.check()


def test_what_comes_during_a_commit_makes_up_the_next(office: Office) -> None:
    async def work(engine: Engine) -> list[Any]:
        first = asyncio.ensure_future(engine.ask(bsub))
        await asyncio.sleep(0)
        return await gather(first, *(engine.ask(bsub) for _ in range(20)))

    answers = office.serve(work)
    assert len({answer["job"] for answer in answers}) == 21
    assert len(office.store.batches) <= 3
    office.check()


@pytest.mark.parametrize("bad", [refuse, fail])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_refusal_fails_its_caller_only(office: Office, bad: Callable[[Cluster, float], Decided], place: int) -> None:
    """So does a decision that is at fault: it has changed nothing."""
    wishes: list[Callable[[Cluster, float], Decided]] = [bsub, bsub]
    wishes.insert(place, bad)
    answers = office.serve(lambda engine: gather(*(engine.ask(wish) for wish in wishes)))
    refusal = answers.pop(place)
    assert isinstance(refusal, Refused)
    assert ("No such queue" in refusal.text) or ("internal error: KeyError" in refusal.text)
    assert [answer["job"] for answer in answers] == [1, 2]
    office.check()


def test_asks_that_change_nothing_are_no_commit(office: Office) -> None:
    answers = office.serve(lambda engine: gather(engine.ask(nothing), engine.ask(refuse)))
    assert answers[0] == {"place": 0}
    assert office.store.batches == []


@pytest.mark.parametrize(
    ("failure", "kind", "text"),
    [
        (StoreFull("store full"), Refused, "The master's store is full"),
        (StoreAway("postgresql://ann:***@db/lava: x"), Away, "The master's store cannot be reached"),
        (StoreRefused("store: x"), Refused, "The master's store refused the request; lavad's log says why"),
    ],
)
def test_a_commit_that_fails_leaves_nothing_and_tells_all(
    office: Office, failure: Exception, kind: type[Refused], text: str
) -> None:
    async def work(engine: Engine) -> list[Any]:
        await engine.ask(bsub)
        before = snapshot(office.cluster)
        office.store.failure = failure
        answers = await gather(engine.ask(bsub, "a"), engine.ask(bsub), engine.ask(refuse), engine.ask(nothing))
        assert snapshot(office.cluster) == before
        again = await engine.ask(bsub, "a")
        return [*answers, again]

    one, two, refused, seen, again = office.serve(work)
    assert one.text == two.text == text
    assert type(one) is type(two) is kind
    assert refused.text == "No such queue"
    assert isinstance(seen, Refused)
    assert again == {"job": 2}
    assert sorted(office.cluster.jobs.rows) == [1, 2]
    assert len(office.told) == 2
    office.check()


def test_a_configuration_that_is_not_stored_is_not_in_force(office: Office) -> None:
    conf = Conf(params=Params(max_jobid=7))

    async def work(engine: Engine) -> None:
        office.store.failure = StoreFull("full")
        with pytest.raises(Refused):
            await engine.ask(lambda cluster, now: Decided(events=[ev.Configured(at=now, conf=conf)]))

    office.serve(work)
    assert office.cluster.conf.params.max_jobid != 7
    office.check()


def test_a_record_that_cannot_be_written_fails_its_own_caller_only(office: Office, store: Store) -> None:
    answers = office.serve(lambda engine: gather(engine.ask(bsub), engine.ask(unwritable, "u-1"), engine.ask(bsub)))
    assert [answers[0], answers[2]] == [{"job": 1}, {"job": 2}]
    assert isinstance(answers[1], Refused)
    assert "cannot be written" in str(answers[1])
    assert sorted(load(store).jobs.rows) == [1, 2]
    assert store.find_answer("u-1") is None
    office.check()


def test_an_unknown_outcome_ends_the_master_and_the_uuid_tells(office: Office, store: Store) -> None:
    async def work(engine: Engine) -> None:
        office.store.failure = OutcomeUnknown("connection lost")
        await engine.ask(bsub, "a")

    with pytest.raises(OutcomeUnknown):
        office.serve(work)
    after = Office(store)
    assert after.serve(lambda engine: engine.ask(bsub, "a")) == {"job": 1}
    assert sorted(after.cluster.jobs.rows) == [1]


def test_a_retry_gets_the_same_answer(office: Office) -> None:
    async def work(engine: Engine) -> list[Any]:
        return [await engine.ask(bsub, "a"), await engine.ask(bsub, "a"), await engine.find_answer("a")]

    assert office.serve(work) == [{"job": 1}] * 3


@pytest.mark.parametrize("remembered", [True, False])
def test_a_retry_gets_the_same_answer_after_a_restart(office: Office, store: Store, remembered: bool) -> None:
    first = office.serve(lambda engine: engine.ask(bsub, "a"))
    after = Office(store)
    if not remembered:
        after.engine = Engine(after.cluster, after.store, lambda: 1000.0, {})  # type: ignore[arg-type]

    async def work(engine: Engine) -> Any:
        return await engine.find_answer("a") if not remembered else await engine.ask(bsub, "a")

    assert after.serve(work) == first
    assert sorted(after.cluster.jobs.rows) == [1]


def test_a_retry_beside_its_first_try_is_one_job(office: Office) -> None:
    """The caller lost its connection while the first try still waited for its turn."""
    answers = office.serve(lambda engine: gather(engine.ask(bsub, "a"), engine.ask(bsub, "a"), engine.ask(bsub, "b")))
    assert [answer["job"] for answer in answers] == [1, 1, 2]
    assert sorted(office.cluster.jobs.rows) == [1, 2]
    office.check()


def test_an_unknown_uuid_has_no_answer(office: Office) -> None:
    assert office.serve(lambda engine: engine.find_answer("nosuch")) is None


def test_several_decisions_of_one_caller_see_each_other(office: Office) -> None:
    answers = office.serve(lambda engine: engine.hand_in([bsub, nothing, bsub]))
    assert answers == [{"job": 1}, {"place": 1}, {"job": 2}]
    assert len(office.store.batches) == 1


@pytest.mark.parametrize("bad", [refuse, fail])
def test_decisions_that_are_joined_end_before_one_that_fails(office: Office, bad: Callable[[Cluster, float], Decided]) -> None:
    def joined(answers: Sequence[Answer]) -> Answer:
        return {"place": len(answers)}

    async def work(engine: Engine) -> list[Any]:
        return await gather(
            engine.hand_in([bsub, bsub, bad, bsub], "a", join=joined),
            engine.hand_in([bad, bsub], "b", join=joined),
            engine.hand_in([bsub], "a", join=joined),
        )

    first, second, again = office.serve(work)
    assert first == again == [{"place": 2}]
    assert isinstance(second, Refused)
    assert sorted(office.cluster.jobs.rows) == [1, 2]
    assert [[uuid for uuid, _ in batch.answers] for batch in office.store.batches] == [["a"]]
    office.check()


def test_joined_answers_that_changed_nothing_are_not_stored(office: Office) -> None:
    """Even beside the change of another: what was refused may be taken when it is asked again."""

    async def work(engine: Engine) -> list[Any]:
        joined = engine.hand_in([nothing], "a", join=lambda answers: answers[0])
        await gather(joined, engine.hand_in([bsub], "b"))
        return [await engine.find_answer("a"), await engine.find_answer("b")]

    assert office.serve(work) == [None, {"job": 1}]
    assert [[uuid for uuid, _ in batch.answers] for batch in office.store.batches] == [["b"]]


def several(count: int) -> Callable[[Cluster, float], Decided]:
    """So many jobs, one a turn; the last one's answer says how many there are."""

    def decide(cluster: Cluster, now: float) -> Decided:
        decided = bsub(cluster, now)
        if count > 1:
            return Decided(events=decided.events, texts=decided.texts, more=several(count - 1))
        return Decided(events=decided.events, texts=decided.texts, answer={"place": len(cluster.jobs.rows) + 1})

    return decide


def test_others_are_served_between_the_parts_of_an_ask(office: Office) -> None:
    answers = office.serve(lambda engine: gather(engine.hand_in([several(4), nothing], "m"), engine.hand_in([bsub], "b")))
    assert answers == [[{"place": 5}, {"place": 5}], [{"job": 2}]]
    assert [len(told.changed) for told in office.told] == [2, 1, 1, 1]
    assert [[uuid for uuid, _ in batch.answers] for batch in office.store.batches] == [["b"], [], [], ["m"]]
    office.check()


def test_a_part_that_fails_is_told_and_those_before_it_stay(office: Office) -> None:
    def fill(_: Committed) -> None:
        if len(office.store.batches) == 2:
            office.store.failure = StoreFull("full")

    office.engine.listen(fill)
    answers = office.serve(lambda engine: gather(engine.ask(several(4), "m")))
    assert [str(answer) for answer in answers] == ["The master's store is full"]
    assert len(office.cluster.jobs.rows) == 2
    office.check()


def test_a_record_that_cannot_be_written_costs_no_part_of_another_ask(office: Office) -> None:
    bad = JobText(command="\ud800")

    def wrong(cluster: Cluster, now: float) -> Decided:
        return Decided(events=bsub(cluster, now).events, texts=[(cluster.next_job, bad)])

    answers = office.serve(lambda engine: gather(engine.ask(several(3)), engine.ask(wrong)))
    assert answers[0] == {"place": 3}
    assert isinstance(answers[1], Refused)
    office.check()


def test_nothing_overtakes_what_was_refused_before_it(office: Office) -> None:
    """Of one host's reports, none may be taken while an earlier one was not."""

    async def work(engine: Engine) -> list[Any]:
        office.store.failure = StoreFull("full")
        first = engine.hand_in([bsub])
        await asyncio.sleep(0)
        second = engine.hand_in([bsub], after=first)
        third = engine.hand_in([bsub], after=second)
        other = engine.hand_in([bsub])
        return await gather(first, second, third, other)

    first, second, third, other = office.serve(work)
    assert isinstance(first, Refused)
    assert isinstance(second, Refused)
    assert isinstance(third, Refused)
    assert other == [{"job": 1}]


def test_a_caller_that_went_away_harms_nobody(office: Office) -> None:
    async def work(engine: Engine) -> Any:
        gone = asyncio.ensure_future(engine.ask(bsub))
        await asyncio.sleep(0)
        gone.cancel()
        return await engine.ask(bsub)

    assert office.serve(work)["job"] in (1, 2)
    office.check()


def illegal(cluster: Cluster, now: float) -> Decided:
    """A job, and then an event that no job allows."""
    return Decided(events=[*bsub(cluster, now).events, ev.JobHeld(at=now, key=77)])


def test_an_illegal_event_refuses_its_caller_and_tells_its_story(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing of the ask stays, and whoever shared its turn gets what they asked for, however often it is sent again."""

    async def work(engine: Engine) -> list[Any]:
        return [await gather(*(engine.ask(ask) for ask in (bsub, bsub, illegal, bsub))) for _ in range(3)]

    for answers in office.serve(work):
        assert [type(answer) for answer in answers] == [dict, dict, Faulty, dict]
        assert "IllegalMove" in str(answers[2])
    assert caplog.text.count("job 77 is not live") == 3
    assert len(office.cluster.jobs.rows) == 9
    office.check()


@pytest.mark.parametrize("spoiled", [False, True], ids=["undone", "ends the master"])
def test_a_fold_that_fails_midway(office: Office, monkeypatch: pytest.MonkeyPatch, spoiled: bool) -> None:
    """Where memory is sound without the turn the caller is refused."""
    fold = FOLDS[ev.JobSubmitted]

    def half(cluster: Cluster, event: Any) -> None:
        fold(cluster, event)
        if event.name == "bad":
            cluster.next_job += 5
            if spoiled:
                cluster.spec_jobs[event.spec] += 1
            raise KeyError("halfway")

    def bad(cluster: Cluster, now: float) -> Decided:
        decided = bsub(cluster, now)
        return replace(decided, events=[replace(one, name="bad") if hasattr(one, "name") else one for one in decided.events])

    monkeypatch.setitem(cast(dict[Any, Any], FOLDS), ev.JobSubmitted, half)
    asks = (bsub, bad, bsub)
    if spoiled:
        with pytest.raises(AssertionError):
            office.serve(lambda engine: gather(*(engine.ask(ask) for ask in asks)))
        return
    first, wrong, last = office.serve(lambda engine: gather(*(engine.ask(ask) for ask in asks)))
    assert (first, last) == ({"job": 1}, {"job": 2})
    assert isinstance(wrong, Faulty)
    office.check()


def test_a_fold_that_fails_while_a_host_has_fewer_slots_than_are_in_use(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is sound, as a host may have come back with fewer CPUs: lavad goes on."""

    def joined(ncpus: int) -> ev.HostJoined:
        return ev.HostJoined(at=1.0, host="h1", facts=Facts(ncpus=ncpus))

    def shrinks(cluster: Cluster, now: float) -> Decided:
        parts = (Placed(host="h1", slots=4),)
        started = ev.JobDispatched(at=now, key=1, attempt=1, uid="u1", parts=parts)
        return Decided(events=[joined(4), started, joined(2)])

    def fails(cluster: Cluster, event: object) -> None:
        raise KeyError("halfway")

    def bad(cluster: Cluster, now: float) -> Decided:
        return Decided(events=[ev.HostUp(at=now, host="h1")])

    monkeypatch.setitem(cast(dict[Any, Any], FOLDS), ev.HostUp, fails)
    _, _, wrong, last = office.serve(lambda engine: gather(*(engine.ask(ask) for ask in (bsub, shrinks, bad, bsub))))
    assert isinstance(wrong, Faulty)
    assert last == {"job": 2}
    office.check()
