"""MIG: a job that the system suspended so long ago goes to another host, if it can start again or go on from a checkpoint.

Rule: the job's own -mig goes before its application profile, that before its queue, and a
shorter time of one of its hosts before all (LSF).
"""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.job.job import Job, Wish
from lavad.core.lang.states import JobState

ENDING = ("kill", "requeue", "migrate")


def migrations(cluster: Cluster, now: float) -> Decided:
    """The jobs whose time is over."""
    events: list[ev.Event] = []
    for key in cluster.suspended:
        job = cluster.jobs.rows[key]
        after = migrate_after(cluster, job)
        if after is not None and now >= job.since + after:
            events.append(ev.JobWished(at=now, key=key, wish=Wish(kind="migrate", at=now, by="system", kill_after=True)))
    return Decided(events=events)


def migrate_after(cluster: Cluster, job: Job) -> int | None:
    """After how many seconds of suspension by the system a job migrates; None: it does not."""
    spec = cluster.specs.rows[job.spec]
    if job.state is not JobState.SSUSP or job.run is None or job.lent_all or not (spec.rerunnable or spec.checkpoint):
        return None
    if any(wish.kind in ENDING for wish in job.run.wishes):
        return None
    app = next((app.migrate_after for app in cluster.conf.apps if app.name == spec.app), None)
    queue = cluster.queue_conf.get(spec.queue)
    own = app if app is not None or queue is None else queue.migrate_after
    own = spec.migrate_after if spec.migrate_after >= 0 else own
    confs = [cluster.host_conf.get(part.host) for part in job.run.parts]
    hosts = [conf.migrate_after for conf in confs if conf is not None and conf.migrate_after is not None]
    return min([*hosts, *([] if own is None else [own])], default=None)
