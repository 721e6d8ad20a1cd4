"""What became of a user's jobs: nothing is missed, or it is said that something was."""

from __future__ import annotations

import asyncio

import pytest

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster import cluster as cluster_module
from lavad.core.events.apply import apply
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.services import changes as changes_module
from lavad.services.changes import Changes
from proto.answers import Change
from tests.support.worlds.world import World


class Told:
    """A cluster whose events reach ``changes`` as the engine tells them, after each batch."""

    def __init__(self) -> None:
        self.world = World()
        self.changes = Changes(self.world.cluster)

    def commit(self, *events: ev.Event) -> None:
        cluster = self.world.cluster
        for event in events:
            apply(cluster, event)
        finished, arrays = list(cluster.finished.values()), list(cluster.finished_arrays.values())
        cluster.forget_changes()
        self.changes.committed(Committed(cluster.version, events, [], finished, arrays))

    def finish(self, key: int, by: str = "") -> None:
        reason = TermReason.TERM_OWNER if by else TermReason.NONE
        self.commit(ev.JobFinished(at=5.0, key=key, state=JobState.EXIT, status=256, reason=reason, by=by))

    async def ask(self, cursor: str = "", wait: float = 0.0, user: str = "alice") -> tuple[list[Change], str, bool]:
        answer = await self.changes.since(user, cursor, wait)
        return list(answer["changes"]), answer["after"], answer["lost"]


def test_each_change_of_the_users_own_jobs_is_told_once() -> None:
    async def story() -> None:
        told = Told()
        mine, array, other = told.world.submit(), told.world.submit(array="1-9"), told.world.submit(user="bob")
        _, cursor, lost = await told.ask()
        assert not lost
        told.finish(mine, by="alice")
        told.finish(other)
        told.commit(ev.ElementsKilled(at=5.0, key=array, elements=Ranges.parse("1-9"), by="root", reason=TermReason.TERM_ADMIN))
        rows, after, lost = await told.ask(cursor)
        assert rows == [
            {"job": str(mine), "state": "EXIT", "host": "", "status": 256, "why": "", "reason": "TERM_OWNER", "by": "alice"},
            {"job": f"{array}[1-9]", "state": "EXIT", "status": 0, "reason": "TERM_ADMIN", "by": "root"},
            {"job": str(array), "state": "EXIT"},
        ]
        assert (await told.ask(after), lost) == (([], after, False), False)
        assert (await told.ask(cursor))[0] == rows, "an answer that was lost can be asked for again"

    asyncio.run(story())


def test_the_end_of_a_job_is_told_whose_spec_is_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "KEPT_SPECS", 0)

    async def story() -> None:
        told = Told()
        before = told.world.submit(queue="normal")
        _, cursor, _ = await told.ask()
        spec = Spec(user="alice", queue="night")
        told.commit(ev.SpecAdded(at=1.0, spec=told.world.cluster.next_spec, value=spec))
        after = told.world.submit(queue="night")
        told.finish(before)
        told.finish(after)
        assert not told.world.cluster.specs.rows
        assert [row["job"] for row in (await told.ask(cursor))[0]] == [str(before), str(after)]

    asyncio.run(story())


def test_who_waits_is_answered_by_the_commit_and_leaves_nothing_behind() -> None:
    async def story() -> None:
        told = Told()
        job = told.world.submit()
        _, cursor, _ = await told.ask()
        gone, stays = (asyncio.ensure_future(told.ask(cursor, 60.0)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        told.finish(job)
        rows, after, _ = await stays
        assert len(rows) == 1
        assert (await told.ask(after, 0.001))[0] == []
        assert not told.changes._users["alice"].waiting

    asyncio.run(story())


def test_a_cursor_of_another_master_or_too_old_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "KEPT", 3)

    async def story() -> None:
        told = Told()
        jobs = [told.world.submit() for _ in range(5)]
        _, first, _ = await told.ask()
        for job in jobs:
            told.finish(job)
        rows, after, lost = await told.ask(first)
        assert (rows, lost) == ([], True)
        assert await told.ask(after) == ([], after, False)
        told.world.apply(ev.MasterStarted(at=6.0, epoch=2, incarnation="test"))
        assert (await told.ask(after))[2]
        for wrong in ("x", "1.1.-1", "1.1.99"):
            assert (await told.ask(wrong))[2]
        with pytest.raises(Refused, match="at most 60 seconds"):
            await told.ask("", 61.0)

    asyncio.run(story())


def test_who_asks_no_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "FORGOTTEN", -1.0)

    async def story() -> None:
        told = Told()
        _, cursor, _ = await told.ask()
        await told.ask(user="bob")
        assert list(told.changes._users) == ["bob"]
        assert (await told.ask(cursor))[2], "its changes were not kept meanwhile"

    asyncio.run(story())


def test_who_watches_is_woken_by_any_event_of_own_jobs() -> None:
    async def story() -> None:
        told = Told()
        first = await told.changes.every("alice", "", 60.0)
        waiting = asyncio.create_task(told.changes.every("alice", first["after"], 60.0))
        await asyncio.sleep(0)
        told.world.apply(ev.SpecAdded(at=1.0, spec=90, value=Spec(user="bob", queue="normal")))
        told.commit(ev.JobSubmitted(at=1.0, key=70, spec=90, name="other"))
        await asyncio.sleep(0)
        assert not waiting.done()
        told.commit(
            ev.SpecAdded(at=1.0, spec=91, value=Spec(user="alice", queue="normal")),
            ev.JobSubmitted(at=1.0, key=71, spec=91, name="own"),
        )
        second = await asyncio.wait_for(waiting, 10)
        assert second["after"] != first["after"]
        told.commit(ev.JobHeld(at=2.0, key=71, by="alice"))
        third = await asyncio.wait_for(told.changes.every("alice", second["after"], 60.0), 10)
        told.finish(71)
        fourth = await asyncio.wait_for(told.changes.every("alice", third["after"], 60.0), 10)
        assert len({one["after"] for one in (first, second, third, fourth)}) == 4
        assert (await told.changes.every("alice", fourth["after"], 0.01))["after"] == fourth["after"]

    asyncio.run(story())
