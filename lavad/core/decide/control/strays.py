"""Attempts that a store restored from a backup does not know: hosts still have them, or their ends, from after the backup.

Rule: they are ended where they run and never taken over. A job that waits here although it has run since, and that may not run
twice, is held until its owner or an administrator decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.message import Message
from lavad.core.lang.ids import index_of, show
from lavad.core.lang.states import JobState

HELD_BY = "lavad"


class Stray(NamedTuple):
    """An attempt that a host has and the store does not: the job's key, the attempt's number, whether it still runs."""

    key: int
    attempt: int
    runs: bool


def tell_strays(cluster: Cluster, host: str, strays: Iterable[Stray], now: float) -> list[ev.Event]:
    """What is told of them to those who look at the jobs, and which jobs are held; nothing where the store was never restored."""
    if not cluster.former:
        return []
    return [event for stray in strays for event in _tell(cluster, host, stray, now)]


def _tell(cluster: Cluster, host: str, stray: Stray, now: float) -> list[ev.Event]:
    job = cluster.find_job(stray.key)
    array = cluster.find_array(stray.key) if index_of(stray.key) else None
    if job is None and (array is None or index_of(stray.key) not in array.pending):
        return []  # not known here, or over
    if job is not None and (job.run is not None or stray.attempt <= job.attempt):
        return []  # it runs here too, and this host tells how that ended; or the attempt began before the backup
    spec = cluster.specs.rows[job.spec if job is not None else array.spec if array is not None else 0]
    end = "was ended" if stray.runs else "has ended"
    text = f"Attempt {stray.attempt}, of after the backup that this store was restored from, ran on host <{host}> and {end} there"
    message = Message(number=cluster.conf.params.max_job_msg_num - 1, text=text, at=now, by=HELD_BY)
    told: list[ev.Event] = [ev.MessagePosted(at=now, key=stray.key, message=message)]
    waits = job is None or job.state is JobState.PEND
    if waits and not spec.rerunnable and spec.checkpoint is None:
        why = f"Job <{show(stray.key)}> has run since the backup: bresume runs it again"
        told.append(ev.JobHeld(at=now, key=stray.key, by=HELD_BY, why=why))
    return told
