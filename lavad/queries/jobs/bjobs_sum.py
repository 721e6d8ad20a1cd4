"""bjobs -sum: job slots of unfinished jobs by state; bjobs -psum: how many jobs wait for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job.job import Job
from lavad.queries.facts import jobfacts, reasons
from lavad.queries.frame import times
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.jobs.bjobs_rows import Form

_COLUMNS = (
    ("RUN", "RUN", 11),
    ("SSUSP", "SSUSP", 12),
    ("USUSP", "USUSP", 11),
    ("UNKNOWN", "UNKWN", 11),
    ("PEND", "PEND", 11),
    ("FWD_PEND", "", 10),
    ("PSUSP", "PSUSP", 9),
)
_HOSTS = "Individual host based reasons"


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """Two lines."""
    counts: Counter[str] = Counter()
    for job in jobs:
        counts[job.state.name] += jobfacts.slots_of(job, request.view.spec(job))
    if form.header:
        yield out("".join(f"{title:<{width}}" for title, _, width in _COLUMNS) + "\n")
    yield out("".join(f"{counts[state]:<{width}}" for _, state, width in _COLUMNS) + "\n")


def show_reasons(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-psum: how many jobs wait for what, and of what is about hosts how often it was found, the most frequent first."""
    counts: Counter[str] = Counter()
    on_hosts: Counter[str] = Counter()
    total = 0
    for job in jobs:
        total += 1
        found = reasons.of(request.view, job)
        counts.update({reasons.text_of(request.view, code) if not hosts else _HOSTS for code, hosts, _ in found})
        for code, hosts, _ in found:
            if hosts:
                on_hosts[reasons.text_of(request.view, code)] += hosts
    width = max((len(words) for words in (*counts, *on_hosts)), default=0) + 3
    yield out(f"Pending reason summary: published {times.year(request.now)}\n")
    yield out(f"Summarizing {total} pending jobs in cluster ({request.view.name}):\n")
    yield out("".join(_counted(counts, width, "jobs")))
    if on_hosts:
        yield out(f"\n{_HOSTS}\n{''.join(_counted(on_hosts, width, 'occurrences'))}")


def _counted(counts: Counter[str], width: int, what: str) -> Iterator[str]:
    for words, count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        yield f"    {words + ':':<{width}}{count} {what}\n"
