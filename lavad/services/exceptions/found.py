"""One exception of a job, and how it is written: as a line for eadmin, and in a mail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from lavad.core.job.job import Job
from lavad.core.job.run_time import run_time
from lavad.core.lang.ids import show
from lavad.queries.facts import jobfacts, queuefacts
from lavad.queries.frame.view import View
from proto.daemon import mailing

MOST_LINES = 1000
"""Exceptions that one mail lists; of the others it says how many they are."""
_COLUMNS = ("EXCEPTION", "JOB_ID", "RUN_TIME", "IDLE_FACTOR", "USER", "QUEUE", "EXEC_HOST", "JOB_NAME")
_SHORT = (0, 1, 4, 5)
"""Of the columns, those of a mail without EXTEND_JOB_EXCEPTION_NOTIFICATION."""


class Found(NamedTuple):
    """An exception of an attempt; ``cells``: a text for each column."""

    key: int
    attempt: int
    name: str
    cells: tuple[str, ...]


def exceptions_of(job: Job, view: View, now: float, known: Collection[str] = ()) -> list[Found]:
    """The exceptions of a job of a queue that has thresholds, but for those that are known."""
    spec = view.spec(job)
    if job.run is None or not queuefacts.has_thresholds(view.queue(spec.queue)):
        return []
    names = [name for name in queuefacts.job_exceptions(job, view, now) if name not in known]
    if not names:
        return []
    ran = run_time(job, now)
    factor = f"{jobfacts.Usage(job, view).cpu / ran:.2f}" if ran else "-"
    hosts = ",".join(dict.fromkeys(part.host for part in jobfacts.parts_of(job)))
    cells = (show(job.key), str(ran), factor, spec.user, spec.queue, hosts, job.name)
    return [Found(job.key, job.attempt, name, tuple(map(_printed, (name, *cells)))) for name in names]


def _printed(text: str) -> str:
    """A word of a user's, without what would end its line or column."""
    return "".join(char if char.isprintable() else "?" for char in text) or "-"


def lines_for_program(found: Iterable[Found]) -> bytes:
    """What eadmin reads: a line for each, its columns separated by tabs."""
    return "".join("\t".join(one.cells) + "\n" for one in found).encode(errors="replace")


def mail_of(found: Sequence[Found], cluster: str, extended: bool) -> str:
    """Subject and text of the mail about these."""
    counts = Counter(one.name for one in found)
    columns = range(len(_COLUMNS)) if extended else _SHORT
    rows = [[table[at] for at in columns] for table in (_COLUMNS, *(one.cells for one in found[:MOST_LINES]))]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if len(found) > MOST_LINES:
        lines.append(f"... and {len(found) - MOST_LINES} more; bjobs -x lists those of jobs that have not ended")
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return f"Subject: Job exceptions in cluster <{cluster}>: {said}\n\n" + "\n".join(lines) + "\n"


def host_mail(hosts: Sequence[tuple[str, str]], cluster: str) -> str:
    """Subject and text of the mail about hosts that were closed: (name, why)."""
    names = " ".join(name for name, _ in hosts)
    lines = "".join(f"Host <{name}> was closed: {why}\n" for name, why in hosts)
    return f"Subject: Host exceptions in cluster <{cluster}>: {names[:200]}\n\n{lines}badmin hopen opens them again.\n"


def addressed(text: str, admins: Sequence[str]) -> bytes:
    """The whole mail, to the administrators from the first of them."""
    return (mailing.head(admins[0], ",".join(admins)) + text).encode(errors="replace")
