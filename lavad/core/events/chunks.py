"""Which job of a chunk has its slot, once the one that had it has left, or the one that runs counts elsewhere."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job
from lavad.core.lang.states import OVER, JobState


def pass_on(cluster: Cluster) -> None:
    """The slots of chunks whose last jobs have left pass to the last ones that are still there: in each fold that ends one."""
    left = list(cluster.use.unheld.values())
    cluster.use.unheld.clear()
    for run in left:
        for place in reversed(range(len(run.ahead))):
            job = cluster.jobs.rows.get(run.ahead[place])
            heir = None if job is None else job.run
            if job is None or heir is None or heir.chunk != run.chunk or heir.parts[0].state in OVER:
                continue
            mine = run.parts[0]
            part = replace(heir.parts[0], slots=mine.slots, reserved=mine.reserved)
            cluster.jobs.put(job.key, replace(job, run=replace(heir, parts=(part,), ahead=run.ahead[:place])))
            break


def with_slot(cluster: Cluster, job: Job) -> Job:
    """A job that has begun in a chunk, with the chunk's slot until it is over: the slot counts for the queue that it goes to."""
    run = job.run
    if run is None or not run.chunk or run.parts[0].slots or run.parts[0].state in OVER or job.state is JobState.WAIT:
        return job
    for key in list(cluster.use.hosts[run.parts[0].host].jobs):
        other = cluster.jobs.rows[key]
        its = other.run
        if its is None or its.chunk != run.chunk or not its.parts[0].slots:
            continue
        slot = its.parts[0]
        without = replace(its, parts=(replace(slot, slots=0, reserved=()),), ahead=())
        cluster.jobs.put(key, replace(other, run=without))
        part = replace(run.parts[0], slots=slot.slots, reserved=slot.reserved)
        ahead = (*(one for one in its.ahead if one != job.key), key)
        return replace(job, run=replace(run, parts=(part,), ahead=ahead))
    return job
