"""Many submissions in one ask, put to the master's own Dispatch over a real store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lavad import engine as engine_module
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.lang.asks import Caller
from lavad.engine import Engine
from lavad.rpc import submissions
from lavad.rpc.dispatch import Dispatch
from lavad.rpc.store_growth import StoreGrowth
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.worlds.bench import ADMIN, ALICE, BOB
from tests.unit.lavad.rpc.test_dispatch_fuzz import answered, made
from web.rest.submit import uuid_of

Rows = list[dict[str, Any]]
REFUSE_BAD = "CREATE TRIGGER no BEFORE INSERT ON live_jobs WHEN instr(NEW.data, x'626164') BEGIN SELECT RAISE(ABORT, 'bad'); END"
"""Of a job of this name."""


class Master:
    """One in office: its parts, and what it is asked."""

    def __init__(self, folder: Path, engine: Engine, dispatch: Dispatch, store: Store) -> None:
        self.folder, self.engine, self.dispatch, self.store = folder, engine, dispatch, store
        self.commits: list[list[int]] = []
        engine.listen(lambda told: self.commits.append([e.key for e in told.events if isinstance(e, ev.JobSubmitted)]))

    async def ask(self, caller: Caller = ALICE, **fields: Any) -> dict[str, Any]:
        [answer] = await answered(self.dispatch, msgspec.json.encode(fields), caller)
        return answer

    async def bulk(self, *jobs: dict[str, Any] | str, caller: Caller = ALICE, **fields: Any) -> Rows:
        made = [{"command": job} if isinstance(job, str) else job for job in jobs]
        answer = await self.ask(caller, ask="bulk", jobs=made, **fields)
        rows: Rows = answer["ok"]["results"]
        return rows

    def text(self, job: int) -> Any:
        reader = Reader.open(f"sqlite:///{self.folder}/lava.db")
        text = reader.text_of(job)
        assert text is not None
        return text, reader.env(text.env)

    def run(self, statement: str) -> None:
        with self.store.connection().begin():
            self.store.connection().exec_driver_sql(statement)


def serve(folder: Path, work: Callable[[Master], Awaitable[None]]) -> None:
    """Carry out ``work`` with a master in office; what it leaves is the same in memory and in the store."""

    async def main() -> None:
        engine, dispatch, store = await made(folder)
        running = asyncio.ensure_future(engine.run())
        await work(Master(folder, engine, dispatch, store))
        assert not running.done()
        running.cancel()
        check_invariants(engine.cluster)
        assert load(store).jobs.rows == engine.cluster.jobs.rows
        store.close()

    asyncio.run(main())


def one_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "SLICE", 0.0)
    monkeypatch.setattr(submissions, "LONGEST_RUN", 1)


def test_a_queue_that_is_closed_takes_nothing_however_lately_it_took_the_same(tmp_path: Path) -> None:
    async def work(master: Master) -> None:
        for _ in range(3):
            assert "ok" in await master.ask(ask="submit", command="a")
            assert "ok" in await master.ask(ADMIN, ask="queues", what="qclose", queues=["normal"])
            assert await master.ask(ask="submit", command="a") == {"refused": "normal: Queue has been closed", "exit": 255}
            assert "ok" in await master.ask(ADMIN, ask="queues", what="qopen", queues=["normal"])

    serve(tmp_path, work)


def test_all_are_made_in_order_by_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "SLICE", 600.0)

    async def work(master: Master) -> None:
        rows = await master.bulk("a", {"command": "b", "options": {"q": "normal", "J": "x"}}, "c")
        assert rows == [
            {"ok": True, "job": 1, "queue": "normal", "default": True},
            {"ok": True, "job": 2, "queue": "normal", "default": False},
            {"ok": True, "job": 3, "queue": "normal", "default": True},
        ]
        assert master.commits == [[1, 2, 3]]

    serve(tmp_path, work)


def test_each_is_refused_alone(tmp_path: Path) -> None:
    async def work(master: Master) -> None:
        rows = await master.bulk(
            {"command": "a", "options": {"q": "nosuch"}}, "b", "", {"command": "c", "options": {"W": "x"}}, "d"
        )
        assert [row.get("job") for row in rows] == [None, 1, None, None, 2]
        assert rows[0] == {"ok": False, "why": "nosuch: No such queue", "exit": 255}
        assert rows[2]["why"] == "No command is specified"
        assert all(not row["ok"] and row["why"] for row in (rows[0], rows[2], rows[3]))
        assert await master.bulk() == []

    serve(tmp_path, work)


@pytest.mark.parametrize("name", ["", "A=B", "="])
def test_what_is_no_name_of_a_variable_is_refused(tmp_path: Path, name: str) -> None:
    async def work(master: Master) -> None:
        refused = {"refused": f"env: {name!r} is no name of a variable", "exit": 255}
        assert await master.ask(ask="submit", command="a", env={"HOME": "/", name: "1"}) == refused
        rows = await master.bulk("a", {"command": "b", "env": {name: "1"}}, env={"HOME": "/"})
        assert [row.get("job") for row in rows] == [1, None]
        assert rows[1]["why"] == refused["refused"]

    serve(tmp_path, work)


def test_a_job_has_what_all_have_and_its_own(tmp_path: Path) -> None:
    async def work(master: Master) -> None:
        common: dict[str, Any] = {
            "env": {"A": "1", "B": "2"},
            "cwd": "/all",
            "home": "/h",
            "umask": 0o77,
            "shell": "/bin/sh",
            "options": {"P": "p"},
        }
        await master.bulk(
            "a",
            {"command": "b", "env": {"B": None, "C": "3"}, "cwd": "/own", "options": {"P": "q", "o": "f"}},
            {"command": "c", "options": {"secret": "A"}},
            **common,
        )
        (first, env), (own, changed), (_, hidden) = (master.text(job) for job in (1, 2, 3))
        assert (first.command, first.cwd, first.home, first.umask, first.shell) == ("a", "/all", "/h", 0o77, "/bin/sh")
        assert (own.command, own.cwd, own.home) == ("b", "/own", "/h")
        assert (env, changed, hidden) == ({"A": "1", "B": "2"}, {"A": "1", "C": "3"}, {"B": "2"})
        assert [master.engine.cluster.spec_of(job).project for job in (1, 2)] == ["p", "q"]

    serve(tmp_path, work)


def test_what_the_sites_esubs_were_is_kept_and_no_variable_of_the_job(tmp_path: Path) -> None:
    """The command has run them, and taken their names out of -a."""

    async def work(master: Master) -> None:
        ran = {"LAVA_ESUBS": "check(fast)  mpi"}
        await master.ask(ask="submit", command="a", env={"A": "1", **ran}, options={"a": ["mpi"]})
        await master.ask(ask="submit", command="b", env={"A": "1"}, options={"a": ["mpi"]})
        await master.bulk(
            "c", {"command": "d", "env": {"LAVA_ESUBS": None}}, {"command": "e", "env": {"B": "2"}}, env={"A": "1", **ran}
        )
        made = [master.text(job) for job in (1, 2, 3, 4, 5)]
        assert [text.esub for text, _ in made] == ["check(fast) mpi", "mpi", "check(fast) mpi", "", "check(fast) mpi"]
        assert [env for _, env in made] == [*[{"A": "1"}] * 4, {"A": "1", "B": "2"}]

    serve(tmp_path, work)


def test_what_was_made_before_the_caller_was_lost_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_a_turn(monkeypatch)
    jobs = [f"step {number}" for number in range(6)]

    async def work(master: Master) -> None:
        third = asyncio.Event()
        master.engine.listen(lambda told: third.set() if master.engine.cluster.next_job > 3 else None)
        lost = asyncio.ensure_future(master.bulk(*jobs, uuid="u"))
        await third.wait()
        lost.cancel()
        rows = await master.bulk(*jobs, uuid="u", again=True)
        assert [row["job"] for row in rows] == [1, 2, 3, 4, 5, 6]
        assert await master.bulk(*jobs, uuid="u", again=True) == rows
        assert sorted(master.engine.cluster.jobs.rows) == [1, 2, 3, 4, 5, 6]

    async def after_a_restart(master: Master) -> None:
        rows = await master.bulk(*jobs, uuid="u", again=True)
        assert [row["job"] for row in rows] == [1, 2, 3, 4, 5, 6]
        assert sorted(master.engine.cluster.jobs.rows) == [1, 2, 3, 4, 5, 6]

    serve(tmp_path, work)
    serve(tmp_path, after_a_restart)


def test_what_was_refused_before_the_caller_was_lost_shifts_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two are refused alone in commits that write nothing; when they are asked again, they would be taken."""
    one_a_turn(monkeypatch)
    jobs = [{"command": "a", "options": {"w": "ended(late)"}}] * 2 + [{"command": "b"}] * 3

    async def work(master: Master) -> None:
        made = asyncio.Event()
        master.engine.listen(lambda told: made.set() if 2 in master.engine.cluster.jobs.rows else None)
        lost = asyncio.ensure_future(master.bulk(*jobs, uuid="u"))
        await made.wait()
        lost.cancel()
        late = await master.ask(ask="submit", command="c", options={"J": "late"})
        rows = await master.bulk(*jobs, uuid="u", again=True)
        assert [row["ok"] for row in rows] == [False, False, True, True, True]
        assert await master.bulk(*jobs, uuid="u", again=True) == rows
        made_now = [row["job"] for row in rows if row["ok"]]
        assert sorted(master.engine.cluster.jobs.rows) == sorted([late["ok"]["job"], *made_now])

    serve(tmp_path, work)


def test_a_stored_answer_longer_than_a_try_shifts_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells of those refused before it too, and what follows was not made before the caller was lost."""
    monkeypatch.setattr(submissions, "AT_ONCE", 2)
    jobs = [{"command": "a", "options": {"q": "nosuch"}}] * 5 + [{"command": "b"}, {"command": "c"}, {"command": "d"}]

    async def work(master: Master) -> None:
        made = asyncio.Event()
        master.engine.listen(lambda told: made.set())
        lost = asyncio.ensure_future(master.bulk(*jobs, uuid="u"))
        await made.wait()
        lost.cancel()
        rows = await master.bulk(*jobs, uuid="u", again=True)
        assert [row.get("job") for row in rows] == [None] * 5 + [1, 2, 3]
        assert [master.text(job)[0].command for job in (1, 2, 3)] == ["b", "c", "d"]
        assert sorted(master.engine.cluster.jobs.rows) == [1, 2, 3]

    serve(tmp_path, work)


def test_jobs_that_were_made_are_told_also_where_their_user_may_add_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_a_turn(monkeypatch)

    async def work(master: Master) -> None:
        rows = await master.bulk("a", "b", "c", uuid="u")
        first = iter([False])
        monkeypatch.setattr(StoreGrowth, "has_to_wait", lambda *_: next(first, True))
        assert await master.bulk("a", "b", "c", uuid="u", again=True) == rows

    serve(tmp_path, work)


def test_one_that_could_not_be_stored_shifts_no_job(tmp_path: Path) -> None:
    """The database refuses the third at first, and takes it when the request is sent again."""
    jobs: list[dict[str, Any]] = [{"command": "a"} for _ in range(5)]
    jobs[2] = {"command": "a", "options": {"J": "bad"}}

    async def work(master: Master) -> None:
        master.run(REFUSE_BAD)
        rows = await master.bulk(*jobs, uuid="u")
        master.run("DROP TRIGGER no")
        assert await master.bulk(*jobs, uuid="u", again=True) == rows
        assert sorted(master.engine.cluster.jobs.rows) == [1, 2, 3, 4]

    serve(tmp_path, work)


def test_large_environments_are_made_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "SLICE", 600.0)
    monkeypatch.setattr(submissions, "ENVIRONMENTS_AT_ONCE", 10_000)
    common = {"ALL": "x" * 4000}

    async def work(master: Master) -> None:
        own = [{"command": "a", "env": {"OWN": str(number)}} for number in range(4)]
        rows = await master.bulk(*own, *["b"] * 3, env=common)
        assert [row["job"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
        assert master.commits == [[1, 2, 3], [4, 5, 6, 7]]
        assert [master.text(job)[1].get("OWN") for job in range(1, 8)] == ["0", "1", "2", "3", None, None, None]

    serve(tmp_path, work)


def test_one_ask_fills_the_store_no_more_than_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LAVA_USER_STORE is 1 MB an hour; a command counts twice."""
    one_a_turn(monkeypatch)

    async def work(master: Master) -> None:
        conf = master.engine.cluster.conf
        master.engine.cluster.conf = replace(conf, params=replace(conf.params, lava_user_store=1, sub_try_interval=7))
        rows = await master.bulk(*["a" * 300_000] * 5)
        assert [row.get("job") for row in rows] == [1, 2, None, None, None]
        assert {(row["why"].split()[-1], row["retry"]) for row in rows[2:]} == {("store", 7)}
        assert len(await master.bulk(*["a" * 300_000] * 5, caller=ADMIN)) == 5
        assert len(master.engine.cluster.jobs.rows) == 7
        master.engine.cluster.conf = conf

    serve(tmp_path, work)


def test_others_are_served_while_many_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_a_turn(monkeypatch)

    async def work(master: Master) -> None:
        many = asyncio.ensure_future(master.bulk(*["a"] * 40))
        other = await master.ask(BOB, ask="submit", command="b")
        assert other["ok"]["job"] < 10
        assert len(await many) == 40
        assert all(len(jobs) <= 2 for jobs in master.commits)

    serve(tmp_path, work)


def test_a_condition_finds_jobs_of_the_same_ask_and_finished_ones(tmp_path: Path) -> None:
    async def work(master: Master) -> None:
        await master.bulk({"command": "a", "options": {"J": "old"}})
        await master.ask(ask="kill", jobs={"ids": ["1"]})
        rows = await master.bulk(
            {"command": "a", "options": {"J": "first"}},
            {"command": "b", "options": {"w": "ended(first)"}},
            {"command": "c", "options": {"w": "ended(1) && ended(old)"}},
            {"command": "d", "options": {"w": "ended(77)"}},
            "e",
        )
        assert [row.get("job") for row in rows] == [2, 3, 4, None, 5]
        assert master.engine.cluster.jobs.rows[3].depend is not None

    serve(tmp_path, work)


@pytest.mark.parametrize("place", [0, 3, 6])
def test_one_that_cannot_be_stored_costs_no_other(tmp_path: Path, place: int) -> None:
    """The database refuses the row of this one."""

    async def work(master: Master) -> None:
        master.run(REFUSE_BAD)
        jobs: list[dict[str, Any]] = [{"command": "a"} for _ in range(7)]
        jobs[place] = {"command": "a", "options": {"J": "bad"}}
        rows = await master.bulk(*jobs)
        assert [row["ok"] for row in rows] == [at != place for at in range(7)]
        assert [row["job"] for row in rows if row["ok"]] == [1, 2, 3, 4, 5, 6]

    serve(tmp_path, work)


def test_a_store_that_takes_nothing_refuses_all_at_once(tmp_path: Path) -> None:
    async def work(master: Master) -> None:
        master.run("PRAGMA max_page_count = 1")
        rows = await master.bulk(*["a" * 10_000] * 50)
        assert {row["why"] for row in rows} == {"The master's store is full"}
        assert len(rows) == 50
        assert master.commits == []

    serve(tmp_path, work)


@pytest.mark.parametrize("again", [False, True])
def test_whoever_knows_the_uuid_of_another_user_gets_no_answer_of_theirs_and_takes_nothing_from_them(
    tmp_path: Path, again: bool
) -> None:
    known = {"uuid": uuid_of(ALICE.user, "POST /api/v1/jobs", "the key"), "again": again}

    async def work(master: Master) -> None:
        for first, then in ((BOB, ALICE), (ALICE, BOB)):
            jobs = [(await master.ask(who, ask="submit", command="a", **known))["ok"]["job"] for who in (first, then)]
            assert [master.engine.cluster.spec_of(job).user for job in jobs] == [first.user, then.user]
        rows = [await master.bulk("b", caller=who, uuid="of both", again=again) for who in (BOB, ALICE)]
        assert [master.engine.cluster.spec_of(row["job"]).user for [row] in rows] == [BOB.user, ALICE.user]
        assert sorted(master.engine.cluster.jobs.rows) == [1, 2, 3, 4]

    serve(tmp_path, work)


def test_what_the_release_before_has_answered_is_not_done_again(tmp_path: Path) -> None:
    async def before(master: Master) -> None:
        first = await master.ask(ask="submit", command="a", uuid="u" * 32)
        master.run("UPDATE answers SET uuid = '" + "u" * 32 + "'")
        assert first["ok"]["job"] == 1

    async def after(master: Master) -> None:
        assert (await master.ask(ask="submit", command="a", uuid="u" * 32, again=True))["ok"]["job"] == 1
        assert sorted(master.engine.cluster.jobs.rows) == [1]

    serve(tmp_path, before)
    serve(tmp_path, after)
