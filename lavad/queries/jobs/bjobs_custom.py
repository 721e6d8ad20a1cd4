"""bjobs -o and -json: rows of chosen fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lavad.core.job.job import Job
from lavad.queries.frame import columns
from lavad.queries.frame.columns import Custom
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import NO_TEXT
from lavad.queries.jobs.bjobs_fields import FIELDS, NEEDS_TEXT, Row
from lavad.queries.jobs.bjobs_rows import Form

__all__ = ["DEFAULT", "FIELDS", "show", "show_json"]

DEFAULT = "jobid user stat queue from_host exec_host job_name submit_time"
_BATCH = 500


def _rows(request: Request, form: Form, custom: Custom, jobs: Iterator[Job]) -> Iterator[list[str]]:
    values = [(FIELDS[column.name].value, column.unit) for column in custom.columns]
    needs_text = any(FIELDS[column.name].name in NEEDS_TEXT for column in custom.columns)
    row = Row(request, form.hms, form.factor)
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.texts(batch) if needs_text else {}
        for job in batch:
            row.take(job, texts.get(job.key, NO_TEXT))
            yield [value(row, unit) for value, unit in values]


def show(request: Request, form: Form, jobs: Iterator[Job]) -> Iterator[Shown]:
    """A table."""
    custom = form.custom
    if custom is None:
        return
    for line in columns.table(custom, _rows(request, form, custom, jobs), form.header):
        yield out(line)


def show_json(request: Request, form: Form, jobs: Iterator[Job], missing: list[str]) -> Iterator[Shown]:
    """JSON; an unknown id is a record with its error."""
    custom = form.custom
    if custom is None:
        return
    records = [columns.record(custom, values) for values in _rows(request, form, custom, jobs)]
    records += [{"JOBID": word, "ERROR": f"Job <{word}> is not found"} for word in missing]
    for piece in columns.json_pieces("bjobs", "JOBS", records):
        yield out(piece)
