"""bjobs -o and -json: rows of chosen fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lavad.core.ids import job_of
from lavad.core.job import Job
from lavad.core.states import WAITING
from lavad.queries import columns, reasons
from lavad.queries.bjobs_fields import FIELDS, NEEDS_TEXT, Row
from lavad.queries.bjobs_rows import Form
from lavad.queries.columns import Custom
from lavad.queries.request import Request, Shown, out

__all__ = ["DEFAULT", "FIELDS", "show", "show_json"]

DEFAULT = "jobid user stat queue from_host exec_host job_name submit_time"
_BATCH = 500


def _rows(request: Request, form: Form, custom: Custom, jobs: Iterator[Job]) -> Iterator[tuple[Job, list[str]]]:
    values = [(FIELDS[column.name].value, column.unit) for column in custom.columns]
    needs_text = any(FIELDS[column.name].name in NEEDS_TEXT for column in custom.columns)
    row = Row(request, form.hms, form.factor)
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.reader.texts({job_of(job.key) for job in batch}) if needs_text else {}
        for job in batch:
            row.take(job, texts.get(job_of(job.key)))
            yield job, [value(row, unit) for value, unit in values]


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """A table."""
    custom = form.custom
    if custom is None:
        return
    if form.level is not None:
        yield from _with_reasons(request, form, custom, jobs)
        return
    for line in columns.table(custom, (values for _, values in _rows(request, form, custom, jobs)), form.header):
        yield out(line)


def _with_reasons(request: Request, form: Form, custom: Custom, jobs: Iterator[Job]) -> Iterator[Shown]:
    """-p with -o: the reasons follow each row."""
    found = list(_rows(request, form, custom, jobs))
    lines = columns.table(custom, [values for _, values in found], form.header)
    if form.header:
        yield out(next(lines))
    for (job, _), line in zip(found, lines, strict=True):
        yield out(line)
        if job.state in WAITING:
            yield out("".join(reasons.pending(request.view, job, form.level or 0, False)))


def show_json(request: Request, form: Form, jobs: Iterator[Job], missing: list[str]) -> Iterator[Shown]:
    """JSON; an unknown id is a record with its error."""
    custom = form.custom
    if custom is None:
        return
    records = [columns.record(custom, values) for _, values in _rows(request, form, custom, jobs)]
    records += [{"JOBID": word, "ERROR": f"Job <{word}> is not found"} for word in missing]
    for piece in columns.json_pieces("bjobs", "JOBS", records):
        yield out(piece)
