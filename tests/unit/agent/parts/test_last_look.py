"""A checkpointable job that ends badly: what it wrote last is told before its end, which does not wait for long."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from agent.core.checkpoint import LAST_LOOK
from agent.parts import control, parts
from agent.starter.protocol import orders
from agent.starter.protocol.answers import Folders, Generations
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import End, Ended, Gone, Hello, Lost, PartState, PartStatus, RunningTask, Started
from proto import agent_pb2 as pb
from tests.unit.agent.parts.test_runner import ME, Bench

TASKS = (RunningTask(0, 4711, 1),)
FAILED = 1 << 8


class Job:
    """It runs on a host whose starter the test is."""

    def __init__(self, folder: Path, protocol: int = 2) -> None:
        self.bench = Bench(folder)
        self.runner, self.protocol = self.bench.runner, protocol
        self.bench.line.put = self._put  # type: ignore[method-assign]
        self.bench.line.start = self._start  # type: ignore[method-assign]
        self._asked: list[orders.Order] = []
        self.greeted(())

    def _put(self, order: orders.Order) -> None:
        self._asked.append(order)

    def _start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        pass

    def greeted(self, there: tuple[PartStatus, ...]) -> None:
        self.runner.starter_connected(cast(Any, None), Hello("boot", 1, 0, there, self.protocol))

    async def runs(self, checkpoint_folder: str = "ck", include_post: bool = False, place: int = 0, started: bool = True) -> None:
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp", checkpoint_folder=checkpoint_folder)
        text.checkpoint_method, text.include_post = "app", include_post
        hosts = [pb.HostSlots(host=name, slots=1) for name in ("h", "g")[: 1 + place]]
        start = pb.Start(sequence=1, text=1, hosts=hosts, restart=3, place=place)
        self.order(texts=[text], start=start)
        await self.bench.found()
        if started:
            self.runner.parts.reported([Started("u", TASKS, time.time())])
        self.told()
        self.looks()

    def order(self, texts: list[pb.JobText] | None = None, **what: Any) -> None:
        order = pb.Order(key=1, attempt=1, uid="u", **what)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=texts or [], orders=[order])))

    def listed(self) -> None:
        """The first look while it runs."""
        self.tick()
        self.runner.from_starter(Folders("look u", ("gen-3",)))
        assert self.looks() == ["all"]

    def tick(self) -> None:
        self.runner.parts.look_for_checkpoints()

    def end(self, status: int, gone: bool = True) -> Ended:
        now = time.time()
        return Ended("u", End(status, now, now, 0.0, 0.0, 0, (), None, False), gone=gone)

    def ends(self, status: int = signal.SIGKILL, gone: bool = True) -> None:
        self.runner.parts.reported([self.end(status, gone)])

    def is_lost(self) -> None:
        self.runner.parts.reported([Lost("u", "its shepherd was lost")])

    def found(self, *whole: int) -> None:
        self.runner.from_starter(Generations("look u", tuple((one, 10) for one in whole)))

    def ended_before(self, state: PartState = PartState.ENDED) -> PartStatus:
        """As the starter lists it."""
        end = self.end(signal.SIGKILL).end if state is PartState.ENDED else None
        return PartStatus("u", 1, 1, state, 4711, 1, end)

    def looks(self) -> list[str]:
        """The looks that were ordered: above which generation."""
        taken, self._asked = self._asked, []
        looked = [one for one in taken if isinstance(one, orders.FindFolders | orders.FindGenerations)]
        return ["all" if isinstance(one, orders.FindFolders) else f"above {one.above}" for one in looked]

    def kills(self) -> bool:
        """Whether a kill was ordered, of what was ordered since ``looks``."""
        return any(isinstance(one, orders.Kill) for one in self._asked)

    def told(self) -> list[str]:
        """What the master was told: generations by number."""
        found = []
        for report in self.runner.outbox.take():
            what = str(report.WhichOneof("what"))
            found.append(f"generation {report.checkpointed.generation}" if what == "checkpointed" else what)
        return found


Story = Callable[[Job], Coroutine[None, None, None]]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.mark.parametrize("status", [signal.SIGKILL, FAILED])
def test_what_it_wrote_last_is_told_before_a_bad_end(job: Job, status: int) -> None:
    async def story() -> None:
        await job.runs()
        job.ends(status)
        assert (job.looks(), job.told()) == (["above 3"], [])
        job.tick()
        assert (job.looks(), job.told()) == ([], []), "one look is enough"
        job.found(4, 5)
        assert job.told() == ["generation 4", "generation 5", "ended"]
        job.found(6)
        assert (job.looks(), job.told()) == ([], [])

    asyncio.run(story())


@pytest.mark.parametrize("lost", [False, True])
def test_a_part_of_which_the_end_alone_is_told_is_looked_at(job: Job, lost: bool) -> None:
    async def story() -> None:
        await job.runs(started=False)
        if lost:
            job.is_lost()
        else:
            job.ends()
        assert job.looks() == ["above 3"]
        job.found(4)
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


def test_what_was_killed_before_it_ran_is_told_at_once(job: Job) -> None:
    async def story() -> None:
        await job.runs(started=False)
        job.runner.parts.reported([Gone("u", 0)])
        assert (job.looks(), job.told()) == ([], ["ended"])

    asyncio.run(story())


def test_a_look_from_before_the_end_may_have_missed_it(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.listed()
        job.tick()
        assert job.looks() == ["above 3"]
        job.ends()
        assert (job.looks(), job.told()) == ([], [])
        job.found(4)
        assert (job.looks(), job.told()) == (["above 4"], ["generation 4"])
        job.found(5)
        assert job.told() == ["generation 5", "ended"]

    asyncio.run(story())


def test_a_first_look_from_before_the_end_has_names_alone(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.tick()
        assert job.looks() == ["all"]
        job.ends()
        job.runner.from_starter(Folders("look u", ("gen-3", "gen-4")))
        assert (job.looks(), job.told()) == (["above 3"], []), "whether it is whole is looked at"
        job.found(4)
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


def test_names_are_all_that_a_starter_of_before_finds(tmp_path: Path) -> None:
    async def story() -> None:
        job = Job(tmp_path, protocol=1)
        await job.runs()
        job.ends()
        assert job.looks() == ["all"]
        job.runner.from_starter(Folders("look u", ("gen-3", "gen-4")))
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


def test_a_folder_that_cannot_be_read_says_nothing_of_its_generations(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.tick()
        job.ends()
        job.runner.from_starter(Folders("look u", error="the shepherd that read it died"))
        assert job.told() == [], "generation 3 is not gone"
        job.runner.from_starter(Generations("look u", error="Stale file handle"))
        assert job.told() == ["ended"]

    asyncio.run(story())


def test_a_look_that_does_not_come_back_keeps_no_end(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        await job.runs()
        at = control.now()
        job.ends()
        job.tick()
        assert job.told() == []
        for module in (control, parts):
            monkeypatch.setattr(module, "now", lambda: at + LAST_LOOK + 1)
        job.tick()
        assert job.told() == ["ended"]

    asyncio.run(story())


def test_a_part_that_was_lost_is_looked_for_too(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.is_lost()
        assert (job.looks(), job.told()) == (["above 3"], [])
        job.runner.parts.reported([Gone("u", 0)])
        assert job.told() == []
        job.found(4)
        assert job.told() == ["generation 4", "ended"]
        assert job.runner.table.find("u") is not None, "until the master has it"

    asyncio.run(story())


@pytest.mark.parametrize("state", [PartState.ENDED, PartState.LOST])
def test_a_starter_that_connects_anew_is_asked_anew(job: Job, state: PartState) -> None:
    async def story() -> None:
        await job.runs()
        if state is PartState.LOST:
            job.is_lost()
        else:
            job.ends()
        assert job.looks() == ["above 3"]
        job.greeted((job.ended_before(state),))
        job.tick()
        assert (job.looks(), job.told()) == (["above 3"], [])
        job.found(4)
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


async def _done(job: Job) -> None:
    await job.runs()
    job.ends(0)


async def _without_checkpoints(job: Job) -> None:
    await job.runs(checkpoint_folder="")
    job.ends()


async def _of_another_host(job: Job) -> None:
    await job.runs(place=1)
    job.ends()


async def _killed(job: Job) -> None:
    await job.runs()
    job.order(signal=pb.Signal(number=1, kind="kill", reason="TERM_OWNER"))
    job.ends()


@pytest.mark.parametrize("story", [_done, _without_checkpoints, _of_another_host, _killed])
def test_other_ends_are_told_at_once(job: Job, story: Story) -> None:
    asyncio.run(story(job))
    assert job.looks() == []
    assert job.told()[-1] == "ended"


def test_a_job_that_ends_well_although_a_checkpoint_was_asked_for_is_looked_at(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.order(signal=pb.Signal(number=1, kind="migrate", reason="TERM_OTHER"))
        job.ends(0)
        assert job.looks() == ["above 3"]
        job.found(4)
        assert not job.kills(), "its post-execution command may run"
        assert job.told() == ["generation 4", "granted", "ended"]

    asyncio.run(story())


@pytest.mark.parametrize(("reason", "tells"), [("TERM_ADMIN", True), ("TERM_PREEMPT", False)])
def test_a_user_who_kills_it_meanwhile_does_not_wait(job: Job, reason: str, tells: bool) -> None:
    async def story() -> None:
        await job.runs()
        job.ends()
        job.order(signal=pb.Signal(number=1, kind="kill", reason=reason))
        job.told()
        job.tick()
        assert job.told() == (["ended"] if tells else [])

    asyncio.run(story())


def test_the_first_host_of_a_job_that_the_master_ends_is_looked_at(job: Job) -> None:
    """As when another of its hosts has failed: the job may start again."""

    async def story() -> None:
        await job.runs()
        job.order(kill=pb.Kill())
        job.ends()
        assert job.looks() == ["above 3"]
        job.found(4)
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


def test_a_look_follows_the_post_execution_command_that_is_part_of_the_job(job: Job) -> None:
    async def story() -> None:
        await job.runs(include_post=True)
        job.ends(gone=False)
        assert (job.looks(), job.told()) == ([], [])
        job.runner.parts.reported([Gone("u", 0)])
        assert (job.looks(), job.told()) == (["above 3"], [])
        job.found(4)
        assert job.told() == ["generation 4", "ended"]

    asyncio.run(story())


def test_what_is_gone_while_it_is_looked_at_is_told_as_gone(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.ends(gone=False)
        job.runner.parts.reported([Gone("u", 0)])
        assert job.told() == []
        job.found()
        (report,) = job.runner.outbox.take()
        assert report.ended.gone

    asyncio.run(story())
