"""bjgroup: job groups that live jobs are in, with their jobs by state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.asks import Refused
from lavad.core.states import SUSPENDED, JobState
from lavad.queries.request import Request, Shown, out

HEADER = "GROUP       NJOBS   PEND    RUN     SUSP    EXITED  DONE    JLIMIT\n"


def show(request: Request) -> Iterator[Shown]:
    """A line for each group, the groups above it included."""
    options = request.options("s N noheader")
    groups = _groups(request)
    if not groups:
        raise Refused("bjgroups: No job groups yet in the system.")
    unknown = next((word for word in request.words if word not in groups), None)
    if unknown is not None:
        raise Refused(f"{unknown}: No such job group")
    if "noheader" not in options:
        yield out(HEADER)
    for name in sorted(groups):
        if not request.words or name in request.words:
            counts = groups[name]
            numbers = [counts[key] for key in ("NJOBS", "PEND", "RUN", "SUSP", "EXITED", "DONE")]
            yield out(f"{name:<11} " + " ".join(f"{number:<7}" for number in numbers) + " -\n")


def _groups(request: Request) -> dict[str, Counter[str]]:
    cluster, view = request.cluster, request.view
    found: dict[str, Counter[str]] = {}
    for job in cluster.jobs.rows.values():
        kind = "RUN" if job.run is not None else "PEND"
        _add(found, view.spec(job).group, "SUSP" if job.state in SUSPENDED | {JobState.PSUSP} else kind, 1)
    for array in cluster.arrays.rows.values():
        group = view.spec(array).group
        for kind, count in (("PEND", len(array.pending)), ("SUSP", len(array.held))):
            _add(found, group, kind, count)
        for kind, count in (("DONE", array.done), ("EXITED", array.exited)):
            _add(found, group, kind, count)
    since = request.now - view.params.clean_period
    ended = view.reader.finished_jobs(since=since)
    view.load_specs(ended)
    for job in ended:
        if job.key & 0xFFFFFFFF not in cluster.arrays.rows:
            _add(found, view.spec(job).group, "DONE" if job.state is JobState.DONE else "EXITED", 1)
    return found


def _add(found: dict[str, Counter[str]], group: str, kind: str, count: int) -> None:
    path = group.rstrip("/")
    while path:
        counts = found.setdefault(path, Counter())
        counts[kind] += count
        counts["NJOBS"] += count
        path = path.rpartition("/")[0]
