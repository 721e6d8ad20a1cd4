"""The finished job that brestart names."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.revive import FinishedJobs
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Refused, Submit


def find_restart_source(
    cluster: Cluster, ask: Submit, caller: Caller, finished: FinishedJobs, text: JobText | None
) -> RestartSource:
    """The job that is meant, live or finished; raises Refused."""
    number = ask.restart_of
    live = cluster.jobs.rows.get(number)
    found = live or next((job for job in finished.jobs if job.key == number), None)
    if found is None or text is None:
        raise Refused(f"{number}: No matching job found")
    spec = cluster.specs.rows[found.spec] if live is not None else finished.specs[found.spec]
    if spec.user != caller.user:
        raise Refused("User permission denied")
    if live is not None:
        raise Refused(f"{number}: Job has not finished yet")
    if spec.checkpoint is None:
        raise Refused("Checkpoint log is not found or is corrupted")
    return RestartSource(spec, text, found.name)
