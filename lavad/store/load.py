"""Loads the cluster from the store: live rows are put into the tables of a ``Cluster``, which builds its indexes from them.

Finished jobs, and specs that no live job has, are not loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from heapq import merge
from itertools import chain, islice

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.fill import fill
from lavad.core.cluster.snapshot import JOBS_AT_ONCE, Snapshot, piece_of, take
from lavad.core.events import Configured
from lavad.core.job.job import Array, Job
from lavad.core.site.service_classes import MissedGoals
from lavad.store import codec, schema
from lavad.store.connect import Query, among, connect, one_snapshot
from lavad.store.ended import ended_of
from lavad.store.errors import StoreCorrupt, StoreRefused, refusal
from lavad.store.writer import Store

RESTORING = "restoring"
"""In ``meta``: a restore has begun, and has not filled the store. To begin a history there would end what runs at the site."""
_CHUNK = 500


def load(store: Store, read: Callable[[Snapshot], None] = lambda _: None) -> Cluster:
    """All live state as of the newest committed batch; raises ``StoreCorrupt``, or ``StoreRefused``, also of one half restored.

    ``read``: called with what was read before a cluster is made of it, which takes longer; jobs that have ended are not in it.
    """
    try:
        with connect(store.engine) as connection, connection.begin():
            one_snapshot(connection)
            return load_rows(connection, read)
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error


def load_rows(connection: sa.Connection, read: Callable[[Snapshot], None] = lambda _: None) -> Cluster:
    """As ``load``, within the caller's transaction."""
    cluster = Cluster()
    # as they are stored: made one after the other, a million take little memory
    jobs = [*_pieces(_data(connection, sa.select(schema.live_jobs.c.data).order_by(schema.live_jobs.c.id)))]
    rows = schema.arrays.c
    going = sa.select(rows.data).where(rows.finished_at.is_(None)).order_by(rows.job)
    arrays = [codec.decode_array(data) for data in _data(connection, going)]
    _counters(connection, cluster)
    _specs(connection, cluster, {record.spec for record in arrays}.union(*map(codec.specs_of_jobs, jobs)))
    for (data,) in connection.execute(sa.select(schema.hosts.c.data).order_by(schema.hosts.c.name)):
        host = codec.decode_host(data)
        cluster.hosts.put(host.name, host)
    for (data,) in connection.execute(sa.select(schema.queues.c.data).order_by(schema.queues.c.name)):
        queue = codec.decode_queue(data)
        cluster.queues.put(queue.name, queue)
    for (data,) in connection.execute(sa.select(schema.charges.c.data)):
        charge = codec.decode_charge(data)
        cluster.charges.put((charge.queue, charge.user, charge.group), charge)
    for (data,) in connection.execute(sa.select(schema.learnt.c.data)):
        learnt = codec.decode_learnt(data)
        cluster.learnt.put(learnt.user, learnt)
    for (data,) in connection.execute(sa.select(schema.paces.c.data)):
        pace = codec.decode_pace(data)
        cluster.paces.put(pace.name, pace)
    for (data,) in connection.execute(sa.select(schema.tokens.c.data)):
        tokens = codec.decode_tokens(data)
        cluster.tokens.put(tokens.user, tokens)
    for (data,) in connection.execute(sa.select(schema.groups.c.data).where(schema.groups.c.gone.is_(False))):
        group = codec.decode_group(data)
        cluster.groups.put(group.name, group)
    for (data,) in connection.execute(sa.select(schema.reservations.c.data).where(schema.reservations.c.gone.is_(False))):
        reservation = codec.decode_reservation(data)
        cluster.reservations.put(reservation.name, reservation)
    read(replace(take(cluster), arrays=arrays, jobs=jobs))
    fill(cluster, merge(arrays, chain.from_iterable(map(codec.decode_jobs, jobs)), key=_order))
    _ended(connection, cluster)
    cluster.forget_changes()
    return cluster


def _pieces(rows: Iterator[bytes]) -> Iterator[msgspec.Raw]:
    while piece := list(islice(rows, JOBS_AT_ONCE)):
        yield piece_of(piece)


def _ended(connection: sa.Connection, cluster: Cluster) -> None:
    """Finished jobs that the conditions of live ones name."""
    named = [job for job in cluster.conditions.named if job not in cluster.jobs.rows]
    for job, ended in ended_of(lambda query: connection.execute(query).all(), named).items():
        if ended:
            cluster.ended.put(job, ended)


def _order(record: Job | Array) -> int:
    return record.job << 32 if isinstance(record, Array) else codec.row_id(record.key)


def _data(connection: sa.Connection, query: Query) -> Iterator[bytes]:
    return (data for (data,) in connection.execution_options(yield_per=10_000).execute(query))


def _counters(connection: sa.Connection, cluster: Cluster) -> None:
    meta: dict[str, str] = {row.name: row.value for row in connection.execute(sa.select(schema.meta))}
    if RESTORING in meta:
        raise StoreRefused(f"store {connection.engine.url.database}: a restore into it has not ended: run lava db restore again")
    cluster.version = connection.execute(sa.select(sa.func.max(schema.events.c.seq))).scalar() or 0
    cluster.epoch = int(meta.get("epoch", "0"))
    cluster.incarnation = meta.get("incarnation", "")
    cluster.former = json.loads(meta.get("former", "{}"))
    at, seconds = meta.get("extended", "0 0").split()
    cluster.extended = (float(at), float(seconds))
    cluster.exceptions_told = float(meta.get("exceptions_told", "0"))
    cluster.goals_missed = msgspec.json.decode(meta.get("goals_missed", "[]"), type=MissedGoals)
    cluster.next_job = int(meta.get("next_job", "1"))
    cluster.next_spec = (connection.execute(sa.select(sa.func.max(schema.specs.c.id))).scalar() or 0) + 1
    if "configured" in meta:
        seq = int(meta["configured"])
        data = connection.execute(sa.select(schema.events.c.data).where(schema.events.c.seq == seq)).scalar()
        event = codec.decode_event(seq, data) if data is not None else None
        if not isinstance(event, Configured):
            raise StoreCorrupt(f"store is corrupt: event {seq} is not the configuration")
        cluster.configure(event.conf)


def _specs(connection: sa.Connection, cluster: Cluster, numbers: set[int]) -> None:
    wanted = sorted(numbers)
    for at in range(0, len(wanted), _CHUNK):
        number_in = among(schema.specs.c.id, wanted[at : at + _CHUNK])
        query = sa.select(schema.specs.c.id, schema.specs.c.data).where(number_in).order_by(schema.specs.c.id)
        for number, data in connection.execute(query):
            spec = codec.decode_spec(number, data)
            cluster.specs.put(number, spec)
            cluster.spec_numbers[spec] = number
    missing = numbers - cluster.specs.rows.keys()
    if missing:
        raise StoreCorrupt(f"store is corrupt: live jobs have spec {min(missing)}, which is not there")
