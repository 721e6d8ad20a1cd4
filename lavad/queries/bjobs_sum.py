"""bjobs -sum: job slots of unfinished jobs by state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job import Job
from lavad.queries import jobfacts
from lavad.queries.bjobs_rows import Form
from lavad.queries.request import Request, Shown, out

_COLUMNS = (
    ("RUN", "RUN", 11), ("SSUSP", "SSUSP", 12), ("USUSP", "USUSP", 11), ("UNKNOWN", "UNKWN", 11), ("PEND", "PEND", 11),
    ("FWD_PEND", "", 10), ("PSUSP", "PSUSP", 9),
)  # fmt: skip


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """Two lines."""
    counts: Counter[str] = Counter()
    for job in jobs:
        counts[job.state.name] += jobfacts.slots_of(job, request.view.spec(job))
    if form.header:
        yield out("".join(f"{title:<{width}}" for title, _, width in _COLUMNS) + "\n")
    yield out("".join(f"{counts[state]:<{width}}" for _, state, width in _COLUMNS) + "\n")
