"""The scheduler's process, run over a socket as the master does: when it plans, and what it waits for before that."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from config.model.queue import QueueConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import take
from lavad.core.events.apply import apply_all
from lavad.core.job.job import End
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import SoftUpdate
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.processes import scheduler
from lavad.replica import protocol as feed
from lavad.replica.replica import Ended, Replica
from tests.support.worlds.world import QUIET

AT = 1000.0
SOON = 20.0
SLOTS, JOBS = 2, 4


class Master:
    """The other end of the socket: a host with two slots, and jobs that wait for them."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._link.settimeout(SOON)
        self._file = link.makefile("rb")
        self.cluster = Cluster()
        jobs = [ev.JobSubmitted(at=AT, key=key, spec=1, name=f"job{key}") for key in range(1, JOBS + 1)]
        begin = [
            ev.Configured(at=AT, conf=Conf(queues=(QueueConfig(name="normal"),))),
            ev.HostJoined(at=AT, host="h", facts=Facts(ncpus=SLOTS)),
            ev.HostUp(at=AT, host="h"),
            ev.SpecAdded(at=AT, spec=1, value=Spec(user="ann", queue="normal")),
            *jobs,
        ]
        apply_all(self.cluster, begin)
        self.cluster.forget_changes()
        self.send(take(self.cluster), SoftUpdate(load={"h": QUIET}))

    def send(self, *messages: msgspec.Struct) -> None:
        """Messages together."""
        self._link.sendall(b"".join(map(feed.frame, messages)))

    def tell(self, *events: Any, plan: bool = False) -> feed.Events:
        """Fold events; the message about them."""
        apply_all(self.cluster, events)
        self.cluster.forget_changes()
        return feed.Events(events=list(events), plan=plan)

    def started(self, plan: Plan) -> feed.Events:
        """The jobs of a plan start."""
        starts = [ev.JobDispatched(at=AT, key=one.key, attempt=1, uid=f"u{one.key}", parts=one.parts) for one in plan.placements]
        return self.tell(*starts)

    def ended(self, key: int, plan: bool = False) -> feed.Events:
        """A job is done."""
        return self.tell(ev.JobFinished(at=AT, key=key, state=JobState.DONE, end=End(at=AT)), plan=plan)

    def said(self) -> feed.FromReplica:
        """The next message."""
        (size,) = feed.HEAD.unpack(self._file.read(feed.HEAD.size))
        return feed.decode_answer(self._file.read(size))

    def plan(self) -> Plan:
        """The next plan."""
        found = self.said()
        assert isinstance(found, Plan)
        return found


@pytest.fixture
def master() -> Iterator[Master]:
    ours, theirs = socket.socketpair()

    def run() -> None:
        with theirs, pytest.raises(Ended):
            scheduler.run(Replica(theirs))

    thread = threading.Thread(target=run)
    thread.start()
    with ours:
        made = Master(ours)
        yield made
        ours.shutdown(socket.SHUT_RDWR)
    thread.join(SOON)
    assert not thread.is_alive()


def keys(plan: Plan) -> list[int]:
    return [one.key for one in plan.placements]


def test_what_the_master_did_not_start_is_planned_again(master: Master) -> None:
    first = master.plan()
    assert keys(first) == [1, 2]
    master.send(master.started(replace(first, placements=first.placements[:1])), feed.PlanDone(version=first.version))
    assert keys(master.plan()) == [2]


def test_no_plan_is_made_before_it_is_known_what_became_of_the_one_before(master: Master) -> None:
    first = master.plan()
    master.send(master.started(first))
    master.send(master.ended(1, plan=True))
    # an answer is given as soon as it is asked for, a plan behind the first of them
    for number in (1, 2):
        master.send(feed.Ping(number=number))
        assert master.said() == feed.Ping(number=number)
    master.send(feed.PlanDone(version=first.version))
    second = master.plan()
    assert (keys(second), second.version) == ([3], master.cluster.version)
