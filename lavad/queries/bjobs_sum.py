"""bjobs -sum: job slots of unfinished jobs by state; bjobs -psum: how many jobs wait for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job import Job
from lavad.queries import jobfacts, reasons, times
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


def show_reasons(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-psum: the pend reasons with the number of jobs that each holds up, the most frequent first."""
    counts: Counter[str] = Counter()
    total = 0
    for job in jobs:
        total += 1
        counts.update({reasons.text_of(request.view, code) for code, _, _ in reasons.of(request.view, job)})
    yield out(f"Pending reason summary: published {times.full(request.now)}\n")
    yield out(f" Summarizing {total} pending job{'' if total == 1 else 's'} in cluster ({request.view.name}):\n")
    for words, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        yield out(f"  {words}: {count} job{'' if count == 1 else 's'}\n")
