"""What a query process reads from the store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums, GpuUse
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import Checkpoint, JobText, Spec
from lavad.core.lang.ids import job_of, key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.site.host import Facts, Gpu
from lavad.store import accounting
from lavad.store.asked import Asked, Find, Share
from lavad.store.errors import StoreRefused, TooManyJobs
from lavad.store.read import BoundedReader, Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit, store, store_url  # noqa: F401

ANN, BOB = Spec(user="ann", queue="normal"), Spec(user="bob", queue="night", project="p")


@pytest.fixture
def reader(store: Store, store_url: str) -> Iterator[Reader]:  # noqa: F811
    """Jobs 1 to 4 (ann, bob, ann, bob) finished at 11 to 14, job 5 live, elements 1 and 3 of array 6 finished."""
    cluster = Cluster()
    specs = [ev.SpecAdded(at=1.0, spec=1, value=ANN), ev.SpecAdded(at=1.0, spec=2, value=BOB)]
    jobs = [ev.JobSubmitted(at=2.0, key=n, spec=1 + (n + 1) % 2, name=f"Job_{n}") for n in range(1, 6)]
    array = ev.JobSubmitted(at=3.0, key=6, spec=1, name="arr", indices=Ranges.span(1, 4), spec_text="arr[1-4]")
    texts = [(n, JobText(command=f"echo {n}", env="h")) for n in range(1, 7)]
    env = [("h", msgspec.msgpack.encode({"PATH": "/bin"}))]
    commit(store, cluster, [*specs, *jobs, array], texts=texts, envs=env)
    done = [ev.JobFinished(at=10.0 + n, key=n, state=JobState.DONE) for n in range(1, 5)]
    elements = [ev.JobFinished(at=20.0, key=n << 32 | 6, state=JobState.EXIT, status=256) for n in (3, 1)]
    commit(store, cluster, [*done, *elements])
    opened = Reader.open(store_url)
    yield opened
    opened.close()


def found(reader: Reader, **find: object) -> list[str]:
    return [job.name for job in reader.finished_jobs(msgspec.convert({"newest_first": True} | find, Find))]


def test_texts(reader: Reader) -> None:
    text = reader.text_of(5)
    assert text == JobText(command="echo 5", env="h")
    assert reader.text_of(99) is None
    assert sorted(reader.texts(range(4, 1000))) == [4, 5, 6]
    assert reader.env("h") == {"PATH": "/bin"}
    assert reader.env("nothing") is None


def test_specs(reader: Reader) -> None:
    assert reader.specs([1, 2, 3]) == {1: ANN, 2: BOB}


def test_finished_jobs_by_time(reader: Reader) -> None:
    assert found(reader) == ["arr[3]", "arr[1]", "Job_4", "Job_3", "Job_2", "Job_1"]
    assert found(reader, newest_first=False) == ["Job_1", "Job_2", "Job_3", "Job_4", "arr[1]", "arr[3]"]
    assert found(reader, since=13.0, until=20.0) == ["Job_4", "Job_3"]
    assert found(reader, limit=2) == ["arr[3]", "arr[1]"]
    assert found(reader, since=12.0, done_since=14.0) == ["arr[3]", "arr[1]", "Job_4"]
    assert found(reader, since=12.0, done_since=30.0) == ["arr[3]", "arr[1]"]


def test_finished_jobs_by_owner_queue_and_project(reader: Reader) -> None:
    assert found(reader, user="bob") == ["Job_4", "Job_2"]
    assert found(reader, queue="normal", until=19.0) == ["Job_3", "Job_1"]
    assert found(reader, project="p") == ["Job_4", "Job_2"]
    assert found(reader, user="nobody") == []


def test_finished_jobs_by_name(reader: Reader) -> None:
    assert found(reader, name="Job_2") == ["Job_2"]
    assert found(reader, name="job_2") == []
    assert found(reader, name="Job%") == []
    assert found(reader, name="J*2") == ["Job_2"]
    assert found(reader, name="arr") == ["arr[3]", "arr[1]"]
    assert found(reader, name="arr[1]") == ["arr[1]"]


def test_finished_jobs_by_key(reader: Reader) -> None:
    assert found(reader, keys=[6]) == ["arr[3]", "arr[1]"]
    assert found(reader, keys=[1 << 32 | 6, 6, 2]) == ["arr[3]", "arr[1]", "Job_2"]
    assert found(reader, keys=[2 << 32 | 6, 5]) == []
    assert found(reader, keys=list(range(1, 2000)), limit=3, newest_first=False) == ["Job_1", "Job_2", "Job_3"]
    assert found(reader, keys=[]) == []


def test_what_is_counted_of_finished_jobs(reader: Reader) -> None:
    assert sorted(reader.finished_keys(13.0, None)) == [3, 4, key_of(6, 1), key_of(6, 3)]
    assert reader.finished_keys(13.0, "bob") == [4]
    marks = reader.finished_marks(14.0)
    assert {(mark.key, mark.spec, mark.state) for mark in marks} == {
        (4, 2, JobState.DONE),
        (key_of(6, 1), 1, JobState.EXIT),
        (key_of(6, 3), 1, JobState.EXIT),
    }


@pytest.mark.parametrize(
    "find", [{}, {"keys": (6,)}, {"keys": (1, 6, 2)}, {"user": "bob"}, {"limit": 2}, {"limit": 4}, {"since": 30.0}]
)
def test_one_that_reads_few_jobs_reads_them_whole_or_not_at_all(reader: Reader, find: dict[str, Any]) -> None:
    whole, marks = reader.finished_jobs(Find(**find)), reader.finished_marks(13.0)
    for most in range(8):
        few = BoundedReader(reader.engine, most)
        for ask, there in ((partial(few.finished_jobs, Find(**find)), whole), (partial(few.finished_marks, 13.0), marks)):
            if len(there) <= most:
                assert ask() == there
            else:
                with pytest.raises(TooManyJobs):
                    ask()


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (Asked(), ["Job_1", "Job_2", "Job_3", "Job_4", "arr[1]", "arr[3]"]),
        (Asked(users=("bob",)), ["Job_2", "Job_4"]),
        (Asked(but_users=("bob",), names=("Job_*",)), ["Job_1", "Job_3"]),
        (Asked(keys=(6, 1, 1, 5, 99)), ["Job_1", "arr[1]", "arr[3]"]),
        (Asked(keys=(6, key_of(6, 3), 2), users=("ann",)), ["arr[1]", "arr[3]"]),
        (Asked(keys=(key_of(6, 3), 2)), ["Job_2", "arr[3]"]),
        (Asked(keys=(6, 1, 2, *range(1_001, 7_001, 2))), ["Job_1", "Job_2", "arr[1]", "arr[3]"]),
        (Asked(keys=(*range(1, 4), *(key_of(6, n) for n in range(3, 7_001, 2)))), ["Job_1", "Job_2", "Job_3", "arr[3]"]),
        (Asked(keys=tuple(range(1, 20_000)), completed=(12.0, 13.0)), ["Job_2", "Job_3"]),
        (Asked(hosts=tuple(f"h{n}" for n in range(2_000))), []),
        (Asked(completed=(12.0, 13.0)), ["Job_2", "Job_3"]),
        (Asked(names=("arr*",), states=(JobState.DONE,)), []),
    ],
)
def test_pages_and_sums_are_about_the_same_jobs(reader: Reader, asked: Asked, names: list[str]) -> None:
    assert [job.name for page in reader.pages(asked) for job in page] == names
    sums = reader.sums(asked)
    assert sums.done + sums.exited == len(names)


@pytest.mark.parametrize("at_once", [1, 2, 3, accounting.IDS])
def test_any_jobs_and_elements_come_as_picked_from_all(reader: Reader, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked for together: rows by themselves, rows that follow each other, arrays."""
    monkeypatch.setattr(accounting, "IDS", at_once)
    everything = [job for page in reader.pages(Asked()) for job in page]
    some = [*range(1, 9), 99, *(key_of(job, index) for job in (3, 6, 7) for index in range(1, 6))]
    choice = random.Random(at_once)
    for _ in range(40):
        keys = tuple(choice.sample(some, choice.randint(1, len(some))))
        asked = Asked(keys=keys, users=choice.choice([(), ("ann",)]))
        picked = [job for job in everything if not {job.key, job_of(job.key)}.isdisjoint(keys)]
        picked = [job for job in picked if not asked.users or job.spec == 1]
        assert [job for page in reader.pages(asked) for job in page] == picked, keys


def test_more_jobs_are_asked_for_than_a_query_has_parameters(reader: Reader) -> None:
    """PostgreSQL takes 65,535 of them."""
    assert reader.sums(Asked(keys=(1, *range(1_001, 71_000, 2)))).done == 1


def test_gpus_of_users_and_projects_sum_up_to_those_of_all(store: Store, store_url: str) -> None:  # noqa: F811
    """Ann's job held two GPUs for 100 s, half used; Bob's was requeued and held one for 40 s and for 60 s."""
    cluster = Cluster()
    specs = [ev.SpecAdded(at=1.0, spec=1, value=ANN), ev.SpecAdded(at=1.0, spec=2, value=BOB)]
    commit(store, cluster, [*specs, *(ev.JobSubmitted(at=2.0, key=n, spec=min(n, 2), name=f"Job_{n}") for n in (1, 2, 3))])

    def attempt(key: int, number: int, at: float, gpus: tuple[str, ...]) -> list[ev.Event]:
        part = Placed(host="h1", slots=3, gpus=gpus)
        return [
            ev.JobDispatched(at=at, key=key, attempt=number, uid=f"u{key}{number}", parts=(part,)),
            ev.PartStarted(at=at, key=key, attempt=number, host="h1", started=at),
        ]

    def end(at: float, started: float, *uses: GpuUse) -> End:
        return End(at=at, started=started, utime=30.0, gpus=uses)

    half = GpuUse(uuid="a", held=100.0, known=100.0, used=50.0, idle=10.0, energy=1000.0)
    facts = Facts(ncpus=8, gpus=(Gpu(uuid="a"), Gpu(uuid="b", index=1)))
    commit(store, cluster, [ev.HostJoined(at=3.0, host="h1", facts=facts), ev.HostUp(at=3.0, host="h1")])
    commit(store, cluster, attempt(1, 1, 10.0, ("a", "b")))
    commit(store, cluster, [ev.JobFinished(at=110.0, key=1, state=JobState.DONE, end=end(110.0, 10.0, half, half))])
    commit(store, cluster, attempt(2, 1, 200.0, ("a",)))
    first = end(240.0, 200.0, GpuUse(uuid="a", held=40.0, known=40.0, idle=40.0))
    commit(store, cluster, [ev.JobRequeued(at=240.0, key=2, state=JobState.PEND, end=first)])
    commit(store, cluster, attempt(2, 2, 300.0, ("b",)))
    last = end(360.0, 300.0, GpuUse(uuid="b", held=60.0, known=60.0, used=60.0, energy=7.0))
    commit(store, cluster, [ev.JobFinished(at=360.0, key=2, state=JobState.EXIT, end=last)])
    commit(store, cluster, [ev.JobFinished(at=370.0, key=3, state=JobState.EXIT)])
    opened = Reader.open(store_url)
    assert opened.sums(Asked()).gpus == GpuSums(300.0, 160.0, 60.0, 2007.0)
    assert opened.sums(Asked(users=("bob",))).gpus == GpuSums(100.0, 60.0, 40.0, 7.0)
    assert opened.sums(Asked(keys=(3,))).gpus == GpuSums()
    none = CheckpointSums()
    gpus = GpuSums(200.0, 100.0, 20.0, 2000.0)
    ann = Share("ann", "default", "normal", 1, 300.0, 30.0, 1, gpus, none, 0, 8.0, 8.0, 110.0, 270.0)
    bob = Share("bob", "p", "night", 2, 180.0, 30.0, 1, GpuSums(100.0, 60.0, 40.0, 7.0), none, 2, 666.0, 368.0, 360.0, 150.0)
    assert sorted(opened.shares(Asked()), key=lambda share: share.user) == [ann, bob]
    assert opened.shares(Asked(completed=(0.0, 200.0))) == [ann]
    assert opened.shares(Asked(queues=("night",))) == [bob]
    assert [(row.key, row.held, row.wasted) for row in opened.wasteful(Asked(), 9, gpus=False)] == [
        (1, 300.0, 270.0),
        (2, 180.0, 150.0),
    ]
    assert [(row.key, row.held, row.wasted) for row in opened.wasteful(Asked(), 1, gpus=True)] == [(2, 100.0, 40.0)]
    opened.close()


def test_checkpoints_and_lost_work_are_summed(store: Store, store_url: str) -> None:  # noqa: F811
    """Ann's job made one of 4 s at 50, was lost at 80 and is done at 150; one of 2 s failed. Bob's has none."""
    cluster = Cluster()
    ann = replace(ANN, checkpoint=Checkpoint("/ck"))
    specs = [ev.SpecAdded(at=1.0, spec=1, value=ann), ev.SpecAdded(at=1.0, spec=2, value=BOB)]
    commit(store, cluster, [*specs, *(ev.JobSubmitted(at=2.0, key=n, spec=n, name=f"Job_{n}") for n in (1, 2))])
    commit(store, cluster, [ev.HostJoined(at=3.0, host="h1", facts=Facts(ncpus=8)), ev.HostUp(at=3.0, host="h1")])
    for number, at in ((1, 10.0), (2, 100.0)):
        started = ev.PartStarted(at=at, key=1, attempt=number, host="h1", started=at)
        parts = (Placed(host="h1", slots=1),)
        commit(store, cluster, [ev.JobDispatched(at=at, key=1, attempt=number, uid=f"u{number}", parts=parts), started])
        if number == 1:
            commit(store, cluster, [ev.CheckpointMade(at=50.0, key=1, attempt=1, generation=0, seconds=4.0)])
            commit(store, cluster, [ev.CheckpointFailed(at=60.0, key=1, attempt=1, generation=-1, seconds=2.0, why="full")])
            commit(store, cluster, [ev.JobRequeued(at=80.0, key=1, state=JobState.PEND, end=End(at=80.0, started=10.0))])
    commit(store, cluster, [ev.JobFinished(at=150.0, key=1, state=JobState.DONE, end=End(at=150.0, started=100.0))])
    commit(store, cluster, [ev.JobFinished(at=160.0, key=2, state=JobState.EXIT)])
    opened = Reader.open(store_url)
    assert opened.sums(Asked()).checkpoints == CheckpointSums(made=1, cost=6.0, restarts=1, lost=30.0)
    assert opened.sums(Asked(users=("bob",))).checkpoints == CheckpointSums()
    assert {one.user: one.checkpoints for one in opened.shares(Asked())} == {
        "ann": CheckpointSums(1, 6.0, 1, 30.0),
        "bob": CheckpointSums(),
    }
    opened.close()


def test_elements_of_a_live_array(reader: Reader) -> None:
    assert [job.name for job in reader.finished_jobs(Find(keys=(6,)))] == ["arr[1]", "arr[3]"]
    assert reader.finished_array(6) is None


def test_the_last_record_of_one_job(reader: Reader) -> None:
    """Of an array's key there is none: its elements, which may be many, are not read for it."""
    element = reader.finished_job(1 << 32 | 6)
    assert element is not None
    assert element.name == "arr[1]"
    assert reader.finished_job(6) is None
    assert reader.finished_job(77) is None


def test_the_worst_element_is_the_first_that_failed_else_the_first(store: Store, store_url: str) -> None:  # noqa: F811
    cluster = Cluster()
    arrays = [
        ev.JobSubmitted(at=2.0, key=key, spec=1, name="arr", indices=Ranges.span(1, 4), spec_text="arr[1-4]") for key in (1, 2)
    ]
    commit(store, cluster, [ev.SpecAdded(at=1.0, spec=1, value=ANN), *arrays])
    commit(store, cluster, [ev.JobFinished(at=5.0, key=n << 32 | 1, state=JobState.DONE) for n in (3, 2, 4)])
    opened = Reader.open(store_url)
    worst = opened.worst_element(1)
    assert worst is not None
    assert worst.name == "arr[2]"
    commit(store, cluster, [ev.JobFinished(at=6.0, key=1 << 32 | 1, state=JobState.DONE)])
    commit(store, cluster, [ev.JobFinished(at=5.0, key=n << 32 | 2, state=JobState.DONE) for n in (1, 2)])
    commit(store, cluster, [ev.JobFinished(at=6.0, key=n << 32 | 2, state=JobState.EXIT) for n in (4, 3)])
    worst = opened.worst_element(2)
    assert worst is not None
    assert worst.name == "arr[3]"
    assert opened.worst_element(77) is None
    opened.close()


def test_history(reader: Reader) -> None:
    assert [type(event).__name__ for _, event in reader.events_of(2)] == ["JobSubmitted", "JobFinished"]
    assert len(reader.events_of(6)) == 3
    assert [event.at for page in reader.events_between(11.0, 13.0) for _, event in page] == [11.0, 12.0]
    assert [*reader.events_between(98.0, 99.0)] == []
    assert [seq for seq, _ in reader.events_after(3, 2)] == [4, 5]
    assert reader.version() == 14


def test_a_reader_writes_nothing(reader: Reader) -> None:
    with reader.engine.connect() as connection, pytest.raises(Exception, match=r"(?i)read-?only"):
        connection.exec_driver_sql("DELETE FROM jobs")


def test_a_reader_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="there is no store"):
        Reader.open(f"sqlite:///{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []
