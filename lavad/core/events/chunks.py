"""What a job leaves to the others of its chunk: part of each fold that ends an attempt."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.states import OVER


def pass_on(cluster: Cluster) -> None:
    """The slots of chunks whose last jobs have left pass to the last ones that are still there."""
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
