"""The contents of one transaction: the events of a batch and the records that they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from lavad.core.cluster.charge import Charge
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.versioned_table import Table
from lavad.core.events import Event, SpecAdded
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Array, Job
from lavad.core.job.memory import Learnt
from lavad.core.job.pace import Pace
from lavad.core.job.spec import JobText, Spec
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.core.site.conf import QueueAdmin
from lavad.core.site.host import Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.tokens import UserTokens

R = TypeVar("R")


class Batch(msgspec.Struct):
    """``first``: sequence number of the first event; the others follow without a gap."""

    first: int
    events: Sequence[Event] = ()
    jobs: Sequence[Job] = ()
    """Changed live records."""
    finished: Sequence[Job] = ()
    arrays: Sequence[Array] = ()
    """Changed live records."""
    dropped_arrays: Sequence[Array] = ()
    """Last records of arrays that are no longer live."""
    specs: Sequence[tuple[int, Spec]] = ()
    hosts: Sequence[tuple[bool, Host]] = ()
    """As ``groups``."""
    queues: Sequence[QueueAdmin] = ()
    groups: Sequence[tuple[bool, JobGroup]] = ()
    """(whether it was removed, its last record)."""
    reservations: Sequence[tuple[bool, Reservation]] = ()
    """As ``groups``."""
    charges: Sequence[Charge] = ()
    learnt: Sequence[Learnt] = ()
    paces: Sequence[Pace] = ()
    tokens: Sequence[tuple[bool, UserTokens]] = ()
    """As ``groups``."""
    texts: Sequence[tuple[int, JobText]] = ()
    """Job id (or key of an element that has a text of its own) and text."""
    envs: Sequence[tuple[str, bytes]] = ()
    """Hash of an environment and its msgpack; stored once."""
    answers: Sequence[tuple[str, bytes]] = ()
    """Client uuid and the answer as JSON."""
    attached: Sequence[tuple[int, int, str]] = ()
    """Key of a job, number of its message, and the data attached to it."""
    cycles: Sequence[RecordedCycle] = ()
    meta: dict[str, str] = {}
    epoch: int = 0


def _with_gone(table: Table[str, R]) -> list[tuple[bool, R]]:
    rows = table.rows
    kept = [(False, rows[name]) for name in table.changed if name in rows]
    return kept + [(True, old) for name, old in table.changed.items() if old is not None and name not in rows]


def batch_of(cluster: Cluster, events: Sequence[Event]) -> Batch:
    """The batch of ``events``, the last that were applied to ``cluster`` since it forgot its changes.

    Texts, environments, answers and meta are the caller's to add.
    """
    jobs = cluster.jobs.rows
    arrays = cluster.arrays.rows
    queues = cluster.queues.rows
    charges, learnt, paces = cluster.charges.rows, cluster.learnt.rows, cluster.paces.rows
    return Batch(
        first=cluster.version - len(events) + 1,
        events=events,
        jobs=[job for key in cluster.jobs.changed if (job := jobs.get(key)) is not None],
        finished=list(cluster.finished.values()),
        arrays=[arrays[job] for job in cluster.arrays.changed if job in arrays],
        dropped_arrays=list(cluster.finished_arrays.values()),
        specs=[(event.spec, event.value) for event in events if type(event) is SpecAdded],
        hosts=_with_gone(cluster.hosts),
        queues=[queues[name] for name in cluster.queues.changed if name in queues],
        groups=_with_gone(cluster.groups),
        reservations=_with_gone(cluster.reservations),
        charges=[charges[account] for account in cluster.charges.changed if account in charges],
        learnt=[learnt[user] for user in cluster.learnt.changed if user in learnt],
        paces=[paces[name] for name in cluster.paces.changed if name in paces],
        tokens=_with_gone(cluster.tokens),
        epoch=cluster.epoch,
    )
