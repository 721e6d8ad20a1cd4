"""Who asks much delays nobody else: turns of users, and commits that one bad record does not multiply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lavad import engine as engine_module
from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events import Event
from lavad.core.lang.asks import Refused
from lavad.engine import QUICK, SLICE, Engine
from lavad.requests import MOST_OF_MASTER, MOST_OF_USER, Request, Waiting
from lavad.store.batch import Batch, batch_of
from lavad.store.rows import StoredText
from lavad.store.writer import Store
from tests.support.worlds.office import EngineClock, Office, bsub, gather, nothing, unwritable


def test_a_uuid_that_memory_has_forgotten_gets_its_first_answer_and_costs_others_no_commit(office: Office, store: Store) -> None:
    first = office.serve(lambda engine: engine.ask(bsub, "a"))
    after = Office(store)
    after.engine = Engine(after.cluster, after.store, lambda: 1000.0, {})  # type: ignore[arg-type]
    others = [(bsub, f"b{n}") for n in range(20)]
    answers = after.serve(lambda engine: gather(*(engine.ask(*ask) for ask in [*others[:9], (bsub, "a"), *others[9:]])))
    assert answers.pop(9) == first
    assert [answer["job"] for answer in answers] == list(range(2, 22))
    assert len(after.store.batches) == 1
    assert store.find_answer("a") == b'{"job":1}'


def test_users_take_turns(office: Office) -> None:
    """However many asks of one user wait, another's is decided in the next turn, and those of one user in their order."""

    async def work(engine: Engine) -> list[Any]:
        many = [engine.ask(bsub, user="eve") for _ in range(3 * MOST_OF_USER)]
        return await gather(*many, engine.ask(bsub, user="ann"))

    *eves, anns = office.serve(work)
    assert anns["job"] <= 2
    assert [answer["job"] for answer in eves] == [job for job in range(1, 3 * MOST_OF_USER + 2) if job != anns["job"]]
    office.check()


def slow(cluster: Cluster, now: float) -> Decided:
    """A job that takes more than a slice of a turn to be decided."""
    EngineClock.now += 1.1 * SLICE
    return bsub(cluster, now)


def test_a_user_whose_asks_take_long_has_few_in_a_turn(office: Office) -> None:
    async def work(engine: Engine) -> list[Any]:
        many = [engine.ask(slow, user="eve") for _ in range(5)]
        return await gather(*many, *(engine.ask(bsub, user="ann") for _ in range(5)))

    answers = office.serve(work)
    assert [answer["job"] for answer in answers[:5]] == [1, 7, 8, 9, 10]
    assert [answer["job"] for answer in answers[5:]] == [2, 3, 4, 5, 6]
    office.check()


@pytest.mark.parametrize(("took", "commits"), [(0.0, 1 + 10), (QUICK, 1 + 10), (4 * QUICK, 1 + 3), (1000 * QUICK, 1 + 1)])
def test_a_slow_commit_is_shared_by_more(office: Office, monkeypatch: pytest.MonkeyPatch, took: float, commits: int) -> None:
    """Where the disk or the machine is slow, more is decided for each commit, up to a limit."""
    commit = office.store.commit

    def slowly(batch: Batch) -> Sequence[StoredText]:
        EngineClock.now += took
        return commit(batch)

    async def work(engine: Engine) -> list[Any]:
        await engine.ask(bsub, user="eve")
        return await gather(*(engine.ask(slow, user="eve") for _ in range(10)))

    monkeypatch.setattr(office.store, "commit", slowly)
    answers = office.serve(work)
    assert [answer["job"] for answer in answers] == list(range(2, 12))
    assert len(office.store.batches) == commits
    office.check()


def test_a_flood_of_reports_keeps_no_user_waiting(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the master itself asks is decided in order, as much of it in a turn as its slice has time for."""
    monkeypatch.setattr(engine_module, "SLICE_OF_MASTER", 0.0)

    async def work(engine: Engine) -> list[Any]:
        asked = [engine.hand_in([bsub], user="ann")]
        for _ in range(5):
            asked.append(engine.hand_in([bsub], after=asked[-1] if len(asked) > 1 else None))
        return await gather(*asked)

    assert [answer["job"] for [answer] in office.serve(work)] == [2, 1, 3, 4, 5, 6]
    office.check()


def test_many_users_keep_no_report_waiting(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "SLICE_OF_USERS", 0.0)

    async def work(engine: Engine) -> list[Any]:
        asked = [engine.hand_in([bsub], user=f"user{number}") for number in range(8)]
        reports = [await engine.hand_in([bsub]) for _ in range(2)]
        return [*await gather(*asked), *reports]

    jobs = [answer["job"] for [answer] in office.serve(work)]
    assert jobs[-1] < jobs[7]
    assert jobs[:8] == sorted(jobs[:8])
    office.check()


def test_what_waits_on_behind_a_turn_that_fails_is_decided_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = iter([ValueError("no batch of these")])

    def made(cluster: Cluster, events: Sequence[Event]) -> Batch:
        for error in batches:
            raise error
        return batch_of(cluster, events)

    async def work(engine: Engine) -> list[Any]:
        monkeypatch.setattr(engine_module, "batch_of", made)
        return await gather(*(engine.ask(slow, user="eve") for _ in range(3)), engine.ask(bsub, user="ann"))

    answers = office.serve(work)
    assert sorted(answer["job"] for answer in answers) == [1, 2, 3, 4]
    assert len(office.cluster.jobs.rows) == 4
    office.check()


def test_few_commits_find_the_one_record_that_cannot_be_written(office: Office) -> None:
    asks = [bsub] * 63
    answers = office.serve(lambda engine: gather(*(engine.ask(ask) for ask in [*asks[:20], unwritable, *asks[20:]])))
    assert isinstance(answers.pop(20), Refused)
    assert [answer["job"] for answer in answers] == list(range(1, 64))
    assert len(office.store.batches) == 6
    office.check()


def test_who_is_answered_hears_of_it_before_the_next_turn(office: Office) -> None:
    heard, decided = list[str](), list[list[str]]()

    def next_turn(_: Committed) -> None:
        office.engine.hand_in([look])

    def look(cluster: Cluster, now: float) -> Decided:
        decided.append([*heard])
        return Decided()

    async def work(engine: Engine) -> None:
        engine.listen(next_turn)
        await engine.ask(bsub)
        heard.append("the answer")
        await engine.ask(nothing)

    office.serve(work)
    assert decided[-1] == ["the answer"]


def test_however_much_the_master_asks_a_turn_looks_at_some_of_it(office: Office) -> None:
    """Those of hosts that come back all at once are no list that each turn goes through from its begin to its end."""

    async def work(engine: Engine) -> list[Any]:
        waiting = Waiting()
        asked = [Request([nothing], str(number), "", None) for number in range(MOST_OF_MASTER + 2)]
        users = [Request([nothing], name, name, None) for name in ("ann", "eve", "ann")]
        for request in (*asked, *users):
            waiting.add(request)
        first = waiting.take()
        assert first == [*asked[:MOST_OF_MASTER], users[0], users[1], users[2]]
        waiting.put_back([*asked[7:MOST_OF_MASTER], users[1], users[2]])
        assert waiting.take() == [*asked[7:], users[1], users[2]]
        assert not waiting
        return []

    office.serve(work)
