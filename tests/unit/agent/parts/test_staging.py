"""A job whose generations are staged: what its end waits for, and what ends the waiting."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any, cast

import pytest

from agent.parts.job_report import CHECKPOINT, STAGED
from agent.starter.protocol import orders
from agent.starter.protocol.answers import Generations
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import End, Ended, Hello, PartState, PartStatus, RunningTask, Started
from proto import agent_pb2 as pb
from proto.daemon.cpu_precedence import LEAST
from tests.unit.agent.parts.test_runner import ME, Bench

TASKS = (RunningTask(0, 4711, 1),)


class Job:
    """It runs on a host whose starter the test is; what was ordered is taken with ``ordered``."""

    def __init__(self, folder: Path) -> None:
        self.bench = Bench(folder)
        self.runner = self.bench.runner
        self.copier, self.nice, self.writer = "", -1, ""
        self.bench.line.start = self._start  # type: ignore[method-assign]
        self.bench.line.put = self._put  # type: ignore[method-assign]
        self._orders: list[str] = []
        self.greeted(())

    def _start(self, sequence: int, template: PartSpec, part: PartSpec) -> None:
        self._orders.append("Start")
        if part.uid.endswith(STAGED):
            self.copier, self.nice = part.uid, part.nice
        self.writer = part.uid if part.uid.endswith(CHECKPOINT) else self.writer

    def _put(self, order: orders.Order) -> None:
        what = f" {order.sig:d}" if isinstance(order, orders.Signal) else ""
        self._orders.append(type(order).__name__ + what)

    def ordered(self) -> list[str]:
        taken, self._orders = self._orders, []
        return [one for one in taken if one != "Forget"]

    def greeted(self, parts: tuple[PartStatus, ...]) -> None:
        self.runner.starter_connected(cast(Any, None), Hello("boot", 1, 0, parts, 2))

    async def runs(self, place: int = -1, method: str = "app") -> None:
        """On this host alone, or on two hosts at this place."""
        text = pb.JobText(id=1, job=1, user=ME, command="true", cwd="/tmp", checkpoint_folder="ck", checkpoint_method=method)
        text.checkpoint_stage = "/all"
        hosts = [pb.HostSlots(host=name, slots=1) for name in ("h", "g")[: 1 if place < 0 else 2]]
        start = pb.Start(sequence=1, text=1, hosts=hosts, restart=-1, place=max(0, place))
        order = pb.Order(key=1, attempt=1, uid="u", start=start)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(texts=[text], orders=[order])))
        await self.bench.found()
        self.runner.parts.reported([Started("u", TASKS, time.time())])
        assert self.ordered() == ["Start"]
        self.bench.said()

    def ends(self, status: int, uid: str = "u", note: str = "") -> None:
        now = time.time()
        end = End(status, now, now, 0.0, 0.0, 0, (), None, False, note=note)
        self.runner.parts.reported([Ended(uid, end, gone=True)])

    def found(self, *whole: tuple[int, int]) -> None:
        self.runner.from_starter(Generations("look u", whole))

    def named(self, generation: int) -> None:
        order = pb.Order(key=1, attempt=1, uid="u", copy_generation=generation)
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[order])))

    def ended_by_master(self) -> None:
        order = pb.Order(key=1, attempt=1, uid="u", kill=pb.Kill())
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[order])))

    def killed(self) -> None:
        request = pb.Signal(number=1, kind="kill", reason="TERM_OWNER")
        self.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[pb.Order(key=1, attempt=1, uid="u", signal=request)])))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_an_end_is_told_when_what_was_written_last_is_copied(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.ends(1 << 8)
        assert (job.ordered(), job.bench.said()) == (["FindGenerations"], [])
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == [], "one look is enough"
        job.found((9, 10))
        assert (job.ordered(), job.bench.said()) == (["Start"], ["checkpointed"])
        job.runner.parts.look_for_checkpoints()
        assert (job.ordered(), job.bench.said()) == ([], [])
        job.ends(0, job.copier, "9 5")
        assert job.bench.said() == ["checkpointed", "ended"]

    asyncio.run(story())


def test_a_copy_that_an_end_waits_for_is_no_less_than_other_processes(job: Job) -> None:
    """One that is made while the job runs takes what nobody else wants."""

    async def story() -> None:
        await job.runs()
        job.runner.parts.look_for_checkpoints()
        job.found((1, 10))
        job.runner.parts.look_for_checkpoints()
        assert job.nice == LEAST
        job.ends(0, job.copier, "1 5")
        job.ends(1 << 8)
        job.found()  # the look of before the end
        job.found((2, 10))
        assert job.nice == 0

    asyncio.run(story())


def test_a_copy_of_the_checkpoint_with_which_a_job_ends_is_no_less_either(job: Job) -> None:
    """It may be begun while the job's processes are still being killed; the end waits for it then."""

    async def story() -> None:
        await job.runs()
        job.runner.parts.look_for_checkpoints()
        request = pb.Signal(number=1, kind="checkpoint", kill_after=True)
        job.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[pb.Order(key=1, attempt=1, uid="u", signal=request)])))
        job.found((1, 10))
        assert "Kill" in job.ordered()
        job.runner.parts.look_for_checkpoints()
        assert (bool(job.copier), job.nice) == (True, 0)
        job.ends(int(signal.SIGKILL))
        assert "ended" not in job.bench.said()

    asyncio.run(story())


def test_a_copy_goes_on_beside_the_program_that_ends_the_job_with_a_checkpoint(job: Job) -> None:
    """The job is gone before the program tells of what it has written, which is copied then."""

    async def story() -> None:
        await job.runs(method="count")
        job.runner.parts.look_for_checkpoints()
        job.found((1, 10))
        job.runner.parts.look_for_checkpoints()
        first = job.copier
        request = pb.Signal(number=1, kind="checkpoint", kill_after=True)
        job.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[pb.Order(key=1, attempt=1, uid="u", signal=request)])))
        assert job.writer
        job.ends(int(signal.SIGKILL))
        job.ordered()
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == [], "nothing ends the copy"
        job.ends(0, job.writer, "2 10")
        job.found()  # the look of before the end
        assert job.ordered() == ["Kill"]
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == ["Signal 15"], "the older one gives way to what was written last"
        job.ends(15, first)
        job.found()
        assert job.copier != first
        assert "ended" not in job.bench.said()
        job.ends(0, job.copier, "2 5")
        assert job.bench.said() == ["checkpointed", "ended"]

    asyncio.run(story())


@pytest.mark.parametrize("status", [1 << 8, 0])
def test_an_end_with_nothing_to_copy_is_told_at_once(job: Job, status: int) -> None:
    async def story() -> None:
        await job.runs()
        job.ends(status)
        if status:
            job.found()
        assert job.bench.said() == ["ended"]
        assert "Start" not in job.ordered()

    asyncio.run(story())


@pytest.mark.parametrize("when", ["search", "copy"])
def test_bkill_waits_for_no_copy(job: Job, when: str) -> None:
    async def story() -> None:
        await job.runs()
        job.ends(1 << 8)
        if when == "copy":
            job.found((9, 10))
        job.ordered()
        job.killed()
        if when == "search":
            job.found((9, 10))
            assert "Start" not in job.ordered()
        else:
            assert f"Signal {signal.SIGTERM}" in job.ordered(), "it removes what it has written"
            job.ends(1 << 8, job.copier)
        assert job.bench.said()[-1] == "ended"

    asyncio.run(story())


def test_an_attempt_that_the_master_has_given_up_is_not_copied(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        kill = pb.Order(key=1, attempt=1, uid="u", kill=pb.Kill())
        job.runner.from_master(pb.ToAgent(orders=pb.Orders(orders=[kill])))
        job.ordered()
        job.ends(signal.SIGKILL)
        assert (job.ordered(), job.bench.said()[-1]) == ([], "ended")

    asyncio.run(story())


def test_a_search_that_another_connection_took_along_is_made_again(job: Job) -> None:
    async def story() -> None:
        await job.runs()
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == ["FindFolders"]
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == [], "it is under way"
        running = PartStatus("u", 1, 1, PartState.RUNNING, 4711, 1, None, tasks=TASKS, at=time.time())
        job.greeted((running,))
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == ["FindFolders"]
        job.ends(1 << 8)
        job.found()
        assert job.ordered() == ["FindGenerations"], "one that was begun before the end may have missed what came last"
        job.found()
        assert job.bench.said()[-1] == "ended"

    asyncio.run(story())


def test_the_first_of_several_hosts_waits_for_the_master_to_name_what_was_written_last(job: Job) -> None:
    async def story() -> None:
        await job.runs(place=0)
        job.named(7)
        job.runner.parts.look_for_checkpoints()
        assert "Start" in job.ordered()
        job.ends(0, job.copier, "7 5")
        assert job.bench.said() == ["checkpointed"]
        job.found()
        job.ends(1 << 8)
        job.ordered()
        job.found((9, 10))
        assert (job.ordered(), job.bench.said()) == ([], ["checkpointed"]), "it is not named yet"
        job.runner.parts.look_for_checkpoints()
        assert job.bench.said() == []
        job.named(9)
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == ["Start"]
        job.ends(0, job.copier, "9 5")
        assert job.bench.said() == ["checkpointed", "ended"]

    asyncio.run(story())


@pytest.mark.parametrize("status", [0, 1 << 8])
def test_the_end_on_another_host_waits_for_the_first(job: Job, status: int) -> None:
    async def story() -> None:
        await job.runs(place=1)
        job.ends(status)
        job.runner.parts.look_for_checkpoints()
        assert (job.ordered(), job.bench.said()) == ([], [])
        job.named(9)
        job.runner.parts.look_for_checkpoints()
        assert job.ordered() == ["Start"]
        job.ends(0, job.copier, "9 5")
        job.runner.parts.look_for_checkpoints()
        assert job.bench.said() == [], "the first host tells of the copy, and the master of its end"
        job.ended_by_master()
        job.runner.parts.look_for_checkpoints()
        assert job.bench.said() == ["ended"]

    asyncio.run(story())


def test_another_host_does_not_wait_once_a_user_has_killed_the_job(job: Job) -> None:
    async def story() -> None:
        await job.runs(place=1)
        job.killed()
        job.ordered()
        job.bench.said()
        job.ends(9)
        assert job.bench.said() == ["ended"]

    asyncio.run(story())


def test_a_copy_is_given_up_where_another_is_named(job: Job) -> None:
    async def story() -> None:
        await job.runs(place=0)
        job.named(3)
        job.runner.parts.look_for_checkpoints()
        first = job.copier
        job.ordered()
        job.named(3)
        assert job.ordered() == [], "the master says it again after a while"
        job.named(4)
        assert job.ordered() == [f"Signal {signal.SIGTERM}"]
        job.ends(1 << 8, first)
        assert job.bench.said() == []
        job.runner.parts.look_for_checkpoints()
        assert "Start" in job.ordered()

    asyncio.run(story())


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("status", [1 << 31, 1 << 64])
def test_an_end_that_cannot_be_told_is_that_of_a_part_that_was_lost(job: Job, status: int, waits: bool) -> None:
    """A number that no wait status is: the master hears that nothing is known, and the agent goes on."""

    async def story() -> None:
        await job.runs()
        if not waits:
            entry = job.runner.parts._table.find("u")
            assert entry is not None
            entry.checkpoint = entry.work.copied = None
        job.ends(status)
        job.found()
        job.runner.parts.look_for_checkpoints()
        (told,) = [report.ended for report in job.runner.outbox.take() if report.WhichOneof("what") == "ended"]
        assert told.lost == "host h could not handle what its starter said about it"

    asyncio.run(story())
