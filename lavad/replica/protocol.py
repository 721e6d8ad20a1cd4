"""What the master sends its replicas (and they send back): msgpack frames on a socket pair.

A replica starts from a ``Snapshot`` and folds each ``Events`` frame with the same ``apply``; frames come in commit order, so a
request that follows a commit sees it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import Snapshot
from lavad.core.events import AnyEvent, Event
from lavad.core.events.apply import apply_all
from lavad.core.job.depend import Ended
from lavad.core.lang.asks import Caller, Query
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft, SoftUpdate, WhyClass, forget

if TYPE_CHECKING:
    import asyncio

HEAD = struct.Struct(">I")


class Events(msgspec.Struct, tag=True):
    """One commit, or a first part of it."""

    events: list[AnyEvent]
    plan: bool = False
    """The master waits for a plan with them, also for one that decides nothing."""


class EndedJobs(msgspec.Struct, tag=True):
    """After a snapshot without them: finished jobs that the conditions of live ones name."""

    jobs: list[tuple[int, Ended]]


class PlanDone(msgspec.Struct, tag=True):
    """The master has processed the plan of this version; accepted proposals were sent before as events.

    ``kept``: its recorded inputs are stored.
    """

    version: int
    kept: bool = False


class Ask(msgspec.Struct, tag=True):
    """A query of a command."""

    number: int
    query: Query
    caller: Caller
    now: float


class Drop(msgspec.Struct, tag=True):
    """The caller of a query has disconnected."""

    number: int


class Taken(msgspec.Struct, tag=True):
    """The caller of a query has taken so many frames of its answer."""

    number: int
    count: int


class Ping(msgspec.Struct, tag=True):
    """Is answered with the same, by a replica that is not stuck."""

    number: int


class Begun(msgspec.Struct, tag=True):
    """The replica renders this query until its answer ends, and nothing else meanwhile; 0: none."""

    number: int


class ReplicaSettings(msgspec.Struct, tag=True):
    """Settings of the master that a replica needs."""

    master: str
    lsf: dict[str, str]
    database: str
    confdir: str
    cluster: str = ""


class Answer(msgspec.Struct, tag=True):
    """Pieces of the answer to a query; ``exit`` is set with the last."""

    number: int
    pieces: list[tuple[str, str]]
    exit: int | None = None


ToReplica = Snapshot | EndedJobs | Events | SoftUpdate | PlanDone | Ask | Drop | Taken | Ping | ReplicaSettings
FromReplica = Plan | Answer | Begun | Ping


class Whys(msgspec.Struct, frozen=True):
    """Pend reasons of classes; equal ones are sent once."""

    answers: list[WhyClass]
    of: dict[int, int]
    """Spec number to the index of its answer."""

    @classmethod
    def pack(cls, why: dict[int, WhyClass]) -> Whys:
        """Pack pend reasons; those that are the same object are packed once."""
        places: dict[int, int] = {}
        answers: list[WhyClass] = []
        of = {}
        for number, answer in why.items():
            place = places.get(id(answer))
            if place is None:
                place = places[id(answer)] = len(answers)
                answers.append(answer)
            of[number] = place
        return cls(answers, of)

    def unpack(self) -> dict[int, WhyClass]:
        return {number: self.answers[place] for number, place in self.of.items()}


class _Planned(msgspec.Struct, tag="Planned"):
    plan: Plan
    whys: Whys


class _Told(msgspec.Struct, tag="Told"):
    news: SoftUpdate
    whys: Whys


encoder = msgspec.msgpack.Encoder()
to_replica: msgspec.msgpack.Decoder[ToReplica | _Told] = msgspec.msgpack.Decoder(ToReplica | _Told)
from_replica: msgspec.msgpack.Decoder[_Planned | Answer | Begun | Ping] = msgspec.msgpack.Decoder(
    _Planned | Answer | Begun | Ping
)


def frame(message: msgspec.Struct) -> bytes:
    """The encoded message, preceded by its length."""
    if isinstance(message, Plan):
        message = _Planned(replace(message, why={}), Whys.pack(message.why))
    elif isinstance(message, SoftUpdate) and message.why:
        message = _Told(replace(message, why=None), Whys.pack(message.why))
    body = encoder.encode(message)
    return HEAD.pack(len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next frame's body; raises IncompleteReadError at the end."""
    (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
    return await reader.readexactly(size)


def decode_answer(body: bytes) -> FromReplica:
    """A frame from a replica."""
    message = from_replica.decode(body)
    return replace(message.plan, why=message.whys.unpack()) if isinstance(message, _Planned) else message


def decode_news(body: bytes | memoryview) -> ToReplica:
    """A frame from the master."""
    message = to_replica.decode(body)
    return replace(message.news, why=message.whys.unpack()) if isinstance(message, _Told) else message


def fold(cluster: Cluster, soft: Soft, events: list[Event], heard: Callable[[Cluster, list[Event]], None] | None = None) -> None:
    """Apply one commit in a replica; the usage of jobs that are over is forgotten. ``heard`` is called while they are known."""
    apply_all(cluster, events)
    if heard is not None:
        heard(cluster, events)
    forget(soft, cluster, events, cluster.finished)
    cluster.forget_changes()
