"""All live records of a cluster at one version: what a replica starts from.

Rule: a new cluster is filled with records here and where the store is loaded; from then on ``apply`` alone changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from lavad.core.cluster.charge import Charge
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.fill import fill
from lavad.core.job.depend import Ended
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Array, Job
from lavad.core.job.memory import Learnt
from lavad.core.job.pace import Pace
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf, QueueAdmin
from lavad.core.site.host import Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.service_classes import MissedGoals
from lavad.core.site.tokens import UserTokens

JOBS_AT_ONCE = 1_000
"""Whose records are made at a time: there may be a million, each some times as large in memory as here."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Job]).decode


class Snapshot(msgspec.Struct, tag=True):
    """Everything live, at a version."""

    version: int
    epoch: int
    incarnation: str
    next_job: int
    next_spec: int
    extended: tuple[float, float]
    conf: Conf
    specs: list[tuple[int, Spec]]
    hosts: list[Host]
    queues: list[QueueAdmin]
    arrays: list[Array]
    jobs: list[msgspec.Raw]
    """JOBS_AT_ONCE in a piece."""
    charges: list[Charge] = []
    learnt: list[Learnt] = []
    tokens: list[UserTokens] = []
    ended: list[tuple[int, Ended]] = []
    groups: list[JobGroup] = []
    reservations: list[Reservation] = []
    exceptions_told: float = 0.0
    goals_missed: MissedGoals = ()
    paces: list[Pace] = []


def take(cluster: Cluster) -> Snapshot:
    """A snapshot of the live records."""
    return Snapshot(
        version=cluster.version,
        epoch=cluster.epoch,
        incarnation=cluster.incarnation,
        next_job=cluster.next_job,
        next_spec=cluster.next_spec,
        extended=cluster.extended,
        conf=cluster.conf,
        specs=list(cluster.specs.rows.items()),
        hosts=list(cluster.hosts.rows.values()),
        queues=list(cluster.queues.rows.values()),
        arrays=list(cluster.arrays.rows.values()),
        jobs=[msgspec.Raw(_encode(jobs)) for jobs in _pieces(cluster.jobs.rows.values())],
        charges=list(cluster.charges.rows.values()),
        learnt=list(cluster.learnt.rows.values()),
        tokens=list(cluster.tokens.rows.values()),
        ended=list(cluster.ended.rows.items()),
        groups=list(cluster.groups.rows.values()),
        reservations=list(cluster.reservations.rows.values()),
        exceptions_told=cluster.exceptions_told,
        goals_missed=cluster.goals_missed,
        paces=list(cluster.paces.rows.values()),
    )


def _pieces(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    left = iter(jobs)
    while piece := list(islice(left, JOBS_AT_ONCE)):
        yield piece


def piece_of(rows: Sequence[bytes]) -> msgspec.Raw:
    """A piece of jobs that are encoded already, at most JOBS_AT_ONCE."""
    return msgspec.Raw(b"\xdc" + len(rows).to_bytes(2, "big") + b"".join(rows))


def restore(snapshot: Snapshot) -> Cluster:
    """A cluster from a snapshot, indexes and all."""
    cluster = Cluster()
    cluster.configure(snapshot.conf)
    cluster.epoch, cluster.incarnation, cluster.extended = snapshot.epoch, snapshot.incarnation, snapshot.extended
    cluster.exceptions_told, cluster.goals_missed = snapshot.exceptions_told, snapshot.goals_missed
    for number, spec in snapshot.specs:
        cluster.specs.put(number, spec)
        cluster.spec_numbers[spec] = number
        cluster.idle_specs[number] = None
    for host in snapshot.hosts:
        cluster.hosts.put(host.name, host)
    for queue in snapshot.queues:
        cluster.queues.put(queue.name, queue)
    fill(cluster, chain(snapshot.arrays, chain.from_iterable(map(_decode, snapshot.jobs))))
    for number, ended in snapshot.ended:
        cluster.ended.put(number, ended)
    for group in snapshot.groups:
        cluster.groups.put(group.name, group)
    for reservation in snapshot.reservations:
        cluster.reservations.put(reservation.name, reservation)
    for charge in snapshot.charges:
        cluster.charges.put((charge.queue, charge.user, charge.group), charge)
    for pace in snapshot.paces:
        cluster.paces.put(pace.name, pace)
    for learnt in snapshot.learnt:
        cluster.learnt.put(learnt.user, learnt)
    for tokens in snapshot.tokens:
        cluster.tokens.put(tokens.user, tokens)
    cluster.next_job, cluster.next_spec, cluster.version = snapshot.next_job, snapshot.next_spec, snapshot.version
    cluster.forget_changes()
    return cluster
