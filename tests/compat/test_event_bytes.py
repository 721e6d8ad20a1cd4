"""Stored events of every kind, field for field: a store of an older lava must read, and a new one must not change unseen.

A kind that is new gets a line in ``event_bytes.txt`` (``LAVA_WRITE_GOLDEN=1`` adds what is missing). A line that is
there never changes: if its bytes no longer come out, the event has changed its meaning for stores that exist.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from config.model.cluster import HostConfig
from config.model.guarantees import Goal
from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.events import EVENTS, Event, kind_of
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import End, Job, PendingSignal, Placed, Suspect, TaskEnd
from lavad.core.job.message import Message
from lavad.core.job.spec import Checkpoint, Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import HangState, JobState, SignalKind, TermReason
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts, Gpu
from lavad.core.site.reservation import Reservation
from lavad.core.site.tokens import IssuedToken
from lavad.store.codec import decode_event, encode

CONF = Conf(queues=(QueueConfig(name="night", priority=5),), hosts=(HostConfig(name="h1", slots=2),))
PLACED = Placed(host="h1", slots=2, gpus=("GPU-1",), reserved=(("mem", 1.5),))
INDICES = Ranges.parse("1-9:2,20")
GOLDEN = Path(__file__).parent / "event_bytes.txt"
KEY = 7 << 32 | 123
PART: dict[str, Any] = {"at": 2.5, "key": KEY, "attempt": 2, "host": "h1"}
END = End(
    status=256,
    at=9.0,
    started=3.0,
    utime=1.5,
    stime=0.25,
    max_mem=1024,
    limit=TermReason.TERM_RUNLIMIT,
    tasks=(TaskEnd(rank=1, pid=5, status=9),),
)
SPEC = Spec(
    user="ann",
    queue="normal",
    slots=4,
    max_slots=8,
    resreq="span[ptile=2]",
    gpu=GpuReq(num=2),
    hosts=("h1+1",),
    limits=Limits(run=3600),
    checkpoint=Checkpoint(folder="/ckpt"),
    dependency="done(1)",
    launch="mpi",
)
FACTS = Facts(ncpus=8, max_mem=64000, boot_id="b", gpus=(Gpu(uuid="GPU-1", model="H200", memory=141000),))

SAMPLES: list[Event] = [
    ev.MasterStarted(at=1.0, epoch=3, incarnation="i1", host="m1"),
    ev.Configured(at=1.0, conf=CONF),
    ev.SpecAdded(at=1.0, spec=4, value=SPEC),
    ev.HostJoined(at=1.0, host="h1", facts=FACTS),
    ev.HostUp(at=1.0, host="h1"),
    ev.HostDown(at=1.0, host="h1"),
    ev.HostFenced(at=1.0, host="h1", ok=True, how="exited with 0", text="off"),
    ev.LeasesExtended(at=1.0, seconds=7200.0, by="root"),
    ev.GoalsMissed(at=1.0, missed=(("a", Goal("velocity", 5, "9:00-17:00"), 1.0),)),
    ev.ExceptionsTold(at=1.0, until=1.0, jobs=((KEY, ("overrun", "idle")),)),
    ev.HostLeft(at=1.0, host="h1", why="it is gone"),
    ev.HostSwitched(at=1.0, host="h1", closed=True, by="root", comment="disk"),
    ev.QueueSwitched(at=1.0, queue="night", open=False, active=True, by="root"),
    ev.JobSubmitted(at=2.0, key=123, spec=4, name="a", held=True, indices=INDICES, limit=3, spec_text="a[1-9:2,20]%3"),
    ev.ElementsHeld(at=2.0, key=123, elements=Ranges.span(1, 3), by="ann"),
    ev.ElementsReleased(at=2.0, key=123, elements=Ranges.span(1, 3), by="ann"),
    ev.ElementsKilled(at=2.0, key=123, elements=Ranges.span(1, 3), by="root", reason=TermReason.TERM_ADMIN),
    ev.ElementSplit(at=2.0, key=KEY),
    ev.JobHeld(at=2.0, key=KEY, by="ann"),
    ev.JobReleased(at=2.0, key=KEY, by="ann"),
    ev.JobModified(at=2.0, key=KEY, spec=5, name="b", by="ann", changes=("slots 8",), limit=2),
    ev.JobSwitched(at=2.0, key=KEY, spec=6, queue="night", by="ann"),
    ev.JobMoved(at=2.0, key=KEY, position=-1.5, by="ann", top=False, place=2),
    ev.JobDispatched(at=2.0, key=KEY, attempt=2, uid="u2", parts=(PLACED,)),
    ev.PartPrepared(**PART, address="10.0.0.1:999"),
    ev.GangReleased(at=2.0, key=KEY, attempt=2),
    ev.PartStarted(**PART, pid=77, started=2.25, cwd="/home/ann"),
    ev.PartStopped(**PART, stopped=True),
    ev.PartEnded(**PART, end=END),
    ev.PartRefused(**PART, code="cwd", why="/x: no such folder"),
    ev.PartGone(**PART),
    ev.PartFenced(**PART),
    ev.SignalRequested(
        at=2.0, key=KEY, pending=PendingSignal(kind=SignalKind.KILL, at=2.0, by="ann", signal=9, reason=TermReason.TERM_OWNER)
    ),
    ev.SignalHandled(at=2.0, key=KEY, number=1, attempt=2, ok=False, why="it is over"),
    ev.JobSuspended(at=2.0, key=KEY, state=JobState.SSUSP, why="load"),
    ev.JobResumed(at=2.0, key=KEY, by="ann"),
    ev.JobLost(at=2.0, key=KEY, host="h1"),
    ev.JobFound(at=2.0, key=KEY, state=JobState.RUN),
    ev.CheckpointMade(at=2.0, key=KEY, attempt=2, generation=4),
    ev.JobRequeued(at=2.0, key=KEY, reason=5, state=JobState.PSUSP, avoid=("h1",), failures=1, not_before=9.0),
    ev.JobFinished(at=2.0, key=KEY, state=JobState.EXIT, status=9, reason=TermReason.TERM_OWNER, why="rank 1", end=END),
    ev.SlotsReserved(at=2.0, key=KEY, parts=(PLACED,)),
    ev.SlotsReleased(at=2.0, key=KEY, why="host h1 is down"),
    ev.DependencyJudged(at=2.0, key=KEY, stands=2, elements=Ranges.span(1, 3)),
    ev.MessagePosted(at=2.0, key=KEY, message=Message(number=1, text="half way", at=2.0, by="ann", body="x")),
    ev.GroupSet(at=2.0, value=JobGroup(name="/risk/a", owner="ann", limit=5, added=2.0), by="root"),
    ev.GroupDropped(at=2.0, group="/risk/a"),
    ev.JobRevived(at=2.0, key=KEY, job=Job(key=KEY, spec=4, name="a[7]", submitted=1.0), done=True, by="ann"),
    ev.RunLimitMoved(at=2.0, key=KEY, attempt=2, soft=7200, hard=3660),
    ev.RusageDecayed(at=2.0, key=KEY, attempt=2),
    ev.RanksSuspected(at=2.0, key=KEY, attempt=2, suspects=(Suspect(3, "h1", 77, HangState.IDLE, 1.5, "futex"),)),
    ev.TaskStarted(at=2.5, key=KEY, attempt=2, rank=3, number=2, pid=77),
    ev.TaskEnded(at=2.5, key=KEY, attempt=2, rank=3, number=1, status=256, limit=TermReason.TERM_MEMLIMIT),
    ev.TaskRetried(at=2.5, key=KEY, attempt=2, rank=3, number=2, delay=0.5, why="worker[1] on h1 ended with exit code 1"),
    ev.ActionPostponed(at=2.5, key=KEY, attempt=2, rank=3, delay=30.0, action="RestartJob", limit=TermReason.TERM_MEMLIMIT),
    ev.ActionDue(at=2.5, key=KEY, attempt=2, rank=3),
    ev.TasksRecalled(at=2.5, key=KEY, attempt=2, ranks=(2, 3), delay=0.5, why="worker[1] on h1 ended with exit code 1"),
    ev.TasksReturned(at=2.5, key=KEY, attempt=2, ranks=(2, 3)),
    ev.JobJudged(at=2.5, key=KEY, attempt=2, end=END, again="worker[1] on h1 ended with exit code 1"),
    ev.JobGrew(at=2.0, key=KEY, attempt=2, number=1, parts=(PLACED,), command="/bin/told"),
    ev.JobShrank(at=2.0, key=KEY, attempt=2, number=2, parts=(PLACED,), forced=True, beneficiary=9, why="lost"),
    ev.JobResized(at=2.0, key=KEY, attempt=2, number=2, ok=False, why="exit code 1"),
    ev.PartLeft(at=2.0, key=KEY, attempt=2, host="h1", end=END, why="lost"),
    ev.ResizeAsked(at=2.0, key=KEY, attempt=2, least=1, most=8, command="", by="ann"),
    ev.AdvanceReservationSet(
        at=2.0, by="root", value=Reservation(name="ann#0", users=("ann",), hosts=(("h1", 2),), begin=3.0, end=9.0, creator="root")
    ),
    ev.AdvanceReservationEnded(at=2.0, name="ann#0", by="root"),
    ev.JobDeadlocked(at=2.0, key=KEY, others=(9,)),
    ev.CheckpointPeriodSet(at=2.0, key=KEY, attempt=2, period=420, cost=3.5, between_failures=86400.0),
    ev.CheckpointStaged(at=2.0, key=KEY, attempt=2, generation=3, seconds=1.5, size=1000),
    ev.CheckpointHolder(at=2.0, key=KEY, attempt=2, host="h2"),
    ev.CheckpointFailed(at=2.0, key=KEY, attempt=2, generation=3, seconds=1.5, why="file a has 3 bytes"),
    ev.GpuSwitched(at=2.0, host="h1", gpu="GPU-1", closed=True, by="lava", comment="lost", cause="health"),
    ev.MemoryLearnt(at=2.0, key=KEY, what="train.py", limit=2097152),
    ev.TokenMade(at=2.0, user="ann", token=IssuedToken("5e1f", "api", 2.0, 9.0, "h1", True)),
    ev.TokensEnded(at=2.0, user="ann", ids=["5e1f"], by="root"),
    ev.StoreRestored(at=2.0, incarnation="i2", former={"i1": 1.5}, next_job=1007),
]


def golden() -> dict[str, bytes]:
    """Kind to bytes, as they have been stored since that kind exists."""
    if not GOLDEN.exists():
        return {}
    lines = (line.split(" ") for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#"))
    return {kind: bytes.fromhex(data) for kind, data in lines}


def test_every_kind_has_a_sample() -> None:
    assert len(SAMPLES) == len(EVENTS)
    assert {type(event) for event in SAMPLES} == set(EVENTS)


def write_what_is_missing() -> None:
    """Add the bytes of new kinds: ``python -c 'from tests.compat.test_event_bytes import *; write_what_is_missing()'``."""
    known = golden()
    lines = [f"{kind_of(type(event))} {known.get(kind_of(type(event)), encode(event)).hex()}" for event in SAMPLES]
    GOLDEN.write_text("# kind and the bytes of its sample in test_event_bytes.py; lines are only ever added\n")
    with GOLDEN.open("a") as file:
        file.write("\n".join(lines) + "\n")


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: kind_of(type(event)))
def test_bytes_of_each_kind(event: Event) -> None:
    stored = golden()[kind_of(type(event))]
    assert decode_event(1, stored) == event
    # names and values, as they come in the bytes: only how wide the count of a map's entries is written may differ
    assert msgspec.msgpack.decode(encode(event)) == msgspec.msgpack.decode(stored)


def test_what_events_had_once_is_passed_over() -> None:
    """JobRequeued had `top`, which nothing read."""
    event = next(event for event in SAMPLES if isinstance(event, ev.JobRequeued))
    stored = msgspec.msgpack.encode(msgspec.msgpack.decode(encode(event)) | {"top": True})
    assert decode_event(1, stored) == event
