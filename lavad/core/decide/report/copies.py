"""Copies of checkpoints on other hosts: which host holds them, when another one does, and why one cannot be brought."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.checkpoints import Checkpoints
from lavad.core.job.job import Attempt, Job
from lavad.core.job.reports import CheckpointReport
from lavad.core.lang.bounds import MAX_WHY
from lavad.core.rules.copy_hosts import choose, is_up


def staged(cluster: Cluster, job: Job, run: Attempt, report: CheckpointReport, now: float) -> list[ev.Event]:
    """A generation is whole in the shared folder or on its holder, or is not; what is known is not told again.

    A holder that is no host of the cluster has left it, or is an invention of an agent: a record would take any number of them.
    """
    if report.holder and report.holder not in cluster.hosts.rows:
        return []
    known = job.checkpoints
    copies = [one for one in known.generations if one.number == report.generation and one.staged] if known is not None else []
    if copies and not report.why and (not report.holder or report.holder in copies[0].hosts):
        return []
    seconds, size = max(0.0, report.seconds), max(0, report.size)
    told = ev.CheckpointStaged(
        at=now,
        key=job.key,
        attempt=run.number,
        generation=report.generation,
        seconds=seconds,
        size=size,
        why=report.why[:MAX_WHY],
        host=report.holder,
    )
    return [told, *(holder(cluster, job, run, now, report.holder) if report.why else [])]


def holder(cluster: Cluster, job: Job, run: Attempt, now: float, failed: str = "") -> list[ev.Event]:
    """Another host is to hold the job's copies, if the one that does is ``failed``, down or the job's own, or there is none.

    Where its port is another one than the job knows, it is named again.
    """
    asked = cluster.specs.rows[job.spec].checkpoint
    if asked is None or not asked.to_hosts or not run.parts:
        return []
    host, known = run.parts[0].host, job.checkpoints or Checkpoints()
    row = cluster.hosts.rows.get(known.holder)
    found = known.holder
    if row is None or found == host or not is_up(row) or (found == failed and row.facts.copies_port == known.holder_port):
        found = choose(cluster, job.key, host, (failed,))
    port = cluster.hosts.rows[found].facts.copies_port if found else 0
    if not found or (found, port) == (known.holder, known.holder_port):
        return []
    return [ev.CheckpointHolder(at=now, key=job.key, attempt=run.number, host=found, port=port)]


def holders_lost(cluster: Cluster, host: str, now: float) -> Iterator[ev.Event]:
    """The host is silent: other hosts are to hold what it held for jobs that run."""
    for job, run in _held_by(cluster, host):
        yield from holder(cluster, job, run, now, host)


def holders_moved(cluster: Cluster, host: str, port: int, now: float) -> Iterator[ev.Event]:
    """The host has come back and takes copies at ``port``: jobs that know another one are told."""
    row = cluster.hosts.rows.get(host)
    if port and row is not None and row.facts.copies_port != port:
        for job, run in _held_by(cluster, host):
            yield ev.CheckpointHolder(at=now, key=job.key, attempt=run.number, host=host, port=port)


def _held_by(cluster: Cluster, host: str) -> list[tuple[Job, Attempt]]:
    """The jobs that run and whose copies go to the host."""
    jobs = [cluster.jobs.rows[key] for key in sorted(cluster.use.copies.get(host, ()))]
    return [(job, job.run) for job in jobs if job.run is not None]


def why_gone(cluster: Cluster, known: Checkpoints | None, number: int, why: str) -> str:
    """Why a job has not gone on from a generation: the hosts with its copies may be down."""
    hosts = next((one.hosts for one in (known.generations if known is not None else ()) if one.number == number), ())
    if not hosts or any(is_up(cluster.hosts.rows.get(host)) for host in hosts):
        return why
    return f"its copy is on {' and '.join(hosts)}, which {'is' if len(hosts) == 1 else 'are'} down"
