"""Data attached to messages: written, replaced, read, and gone with the job whose id is used again; older stores still read."""

from __future__ import annotations

from functools import partial
from typing import cast

import msgspec

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import Job
from lavad.core.job.message import Message
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState
from lavad.store.codec import decode_job
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import store, store_url  # noqa: F401
from tests.support.worlds.office import Office


def submitted(cluster: Cluster, now: float, job: int = 1) -> Decided:
    number = cluster.next_spec
    events: list[ev.Event] = [ev.SpecAdded(at=now, spec=number, value=Spec(user="ann", queue="normal", project=f"p{number}"))]
    events.append(ev.JobSubmitted(at=now, key=job, spec=number, name="n"))
    return Decided(events=events, answer={"job": job}, texts=[(job, JobText(command="true"))])


def posted(key: int, number: int, data: str) -> Decided:
    message = Message(number=number, text="t", at=1.0, attached=key, size=len(data))
    return Decided(events=[ev.MessagePosted(at=1.0, key=key, message=message)], attached=[(key, number, data)])


def test_what_is_attached_stays_in_the_store(store: Store, store_url: str) -> None:  # noqa: F811
    office = Office(store)
    reader = Reader.open(store_url)

    async def work(engine: object) -> None:
        ask = office.engine.ask
        await ask(submitted)
        await ask(lambda cluster, now: posted(1, 5, "first ü"))
        await ask(lambda cluster, now: posted(1, 5, "second ü"))
        await ask(lambda cluster, now: posted(1, 6, "other"))

    office.serve(work)
    assert [reader.attached(1, number) for number in (5, 6, 7)] == ["second ü", "other", ""]
    assert reader.attached(key_of(1, 2), 5) == ""
    assert all(not message.body for message in office.cluster.jobs.rows[1].messages)

    after = Office(store)

    async def again(engine: object) -> None:
        await after.engine.ask(lambda cluster, now: Decided(events=[ev.JobFinished(at=now, key=1, state=JobState.EXIT)]))
        await after.engine.ask(submitted)

    after.serve(again)
    assert reader.attached(1, 5) == ""


def test_ids_that_are_used_again_one_after_the_other_have_nothing_of_the_former_jobs(
    store: Store,  # noqa: F811
    store_url: str,  # noqa: F811
) -> None:
    """Ids have wrapped around: not the first of them alone."""
    office = Office(store)
    reader = Reader.open(store_url)

    async def work(engine: object) -> None:
        ask = office.engine.ask
        for left in (0, 1, 2, 2, 2, 2):
            job = cast("int", (await ask(submitted_next))["job"])
            assert (reader.attached(job, 5), len(reader.finished_keys(0.0, None))) == ("", left)
            await ask(partial(with_data, job))
            await ask(partial(ended, job))

    def submitted_next(cluster: Cluster, now: float) -> Decided:
        return submitted(cluster, now, cluster.next_job if cluster.next_job <= 3 else 1)

    def with_data(job: int, _: Cluster, __: float) -> Decided:
        return posted(job, 5, "data")

    def ended(job: int, _: Cluster, now: float) -> Decided:
        return Decided(events=[ev.JobFinished(at=now, key=job, state=JobState.EXIT)])

    office.serve(work)


def test_a_message_of_an_older_store_has_its_data() -> None:
    old = {"key": 1, "spec": 1, "name": "n", "submitted": 1.0}
    old["messages"] = [{"number": 0, "text": "t", "at": 1.0, "body": "data"}]
    job: Job = decode_job(msgspec.msgpack.encode(old))
    assert (job.messages[0].body, job.messages[0].attached) == ("data", 0)
