"""bjgroup: job groups (added ones, and those that jobs are in), each with the jobs in it and below it by state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from lavad.core.job.groups import limited_by, lineage, read_path
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState
from lavad.queries.facts import jobfacts
from lavad.queries.facts.jobset import STOPPED
from lavad.queries.frame.request import Request, Shown, err, leave, out

HEADER = "GROUP       NJOBS   PEND    RUN     SUSP    EXITED  DONE    JLIMIT\n"
COLUMNS = ("NJOBS", "PEND", "RUN", "SUSP", "EXITED", "DONE")


def show(request: Request) -> Iterator[Shown]:
    """A line for each group; -N counts slots instead of jobs, -s sorts by hierarchy, as in IBM's examples.

    A word with -s shows the group and those below it; with a slash at its end the group alone.
    """
    options = request.options()
    counts = _counts(request, "N" in options)
    owners = _owners(request)
    names = [name for name in {**counts, **request.cluster.groups.rows} if _owned(name, owners, options.text("u"))]
    if not names:
        raise Refused("bjgroups: No job groups yet in the system.")
    asked = {word: read_path(word) for word in request.words}
    if not asked or any(path in names for path in asked.values()):
        yield out(HEADER)
    with_below = [path for word, path in asked.items() if "s" in options and not word.endswith("/")]
    for name in sorted(names, key=lambda name: (0, name.split("/")) if "s" in options else (name.count("/"), name.split("/"))):
        if not asked or name in asked.values() or any(name.startswith(f"{path}/") for path in with_below):
            yield out(_row(request, name, counts.get(name, Counter())))
    for word, path in asked.items():
        if path not in names:
            yield err(f"{word}: No such job group")
            yield leave(255)


def _row(request: Request, name: str, counts: Counter[str]) -> str:
    limit, row = "-", limited_by(name, request.cluster.groups.rows)
    if row is not None:
        limit = f"{request.cluster.use.group_running.get(name, 0)}/{row.limit}"
    numbers = [counts[key] for key in COLUMNS]
    return f"{name:<11} " + " ".join(f"{number:<7}" for number in numbers) + f" {limit}\n"


def _owners(request: Request) -> dict[str, str]:
    return {name: row.owner for name, row in request.cluster.groups.rows.items()}


def _owned(name: str, owners: dict[str, str], user: str) -> bool:
    return user in ("", "all") or owners.get(name, user) == user


def _live(request: Request, slots: bool) -> dict[int, Counter[str]]:
    """Spec number to its jobs, and touched elements, or their slots, by column."""
    found: defaultdict[int, Counter[str]] = defaultdict(Counter)
    specs = request.cluster.specs.rows
    for job in request.cluster.jobs.rows.values():
        kind = "RUN" if job.run is not None and job.state is not JobState.WAIT else "PEND"
        count = jobfacts.slots_of(job, specs[job.spec]) if slots else 1
        found[job.spec]["SUSP" if job.state in STOPPED else kind] += count
    return found


def _ended(request: Request) -> dict[int, Counter[JobState]]:
    """Spec number to the jobs that finished lately; of arrays that are live, the array counts."""
    found: defaultdict[int, Counter[JobState]] = defaultdict(Counter)
    arrays = request.cluster.arrays.rows
    for mark in request.view.finished_marks(request.now - request.view.params.clean_period):
        if mark.key & 0xFFFFFFFF not in arrays:
            found[mark.spec][mark.state] += 1
    return found


def _counts(request: Request, slots: bool) -> dict[str, Counter[str]]:
    """Jobs by state; groups that jobs are in come with those above them."""
    cluster, view = request.cluster, request.view
    found: dict[str, Counter[str]] = {}

    def add(spec: Spec, kind: str, count: int) -> None:
        for path in lineage(spec.group) if spec.group else ():
            counts = found.setdefault(path, Counter())
            counts[kind] += count
            counts["NJOBS"] += count

    for number, kinds in _live(request, slots).items():
        for kind, count in kinds.items():
            add(cluster.specs.rows[number], kind, count)
    for array in cluster.arrays.rows.values():
        spec = view.spec(array)
        if spec.group:
            pairs = (len(array.pending), len(array.held), array.done, array.exited)
            for kind, count in zip(("PEND", "SUSP", "DONE", "EXITED"), pairs, strict=True):
                add(spec, kind, count * (spec.slots if slots else 1))
    for number, states in _ended(request).items():
        spec = view.spec_numbered(number)
        for state, count in states.items():
            add(spec, "DONE" if state is JobState.DONE else "EXITED", count * (spec.slots if slots else 1))
    return found
