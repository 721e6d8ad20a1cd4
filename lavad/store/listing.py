"""A page of what has finished, by number: separate jobs and arrays, or the elements of one array."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from lavad.core.job.job import Array, Job
from lavad.store import codec, schema
from lavad.store.connect import Found, Query

_jobs, _arrays = schema.jobs.c, schema.arrays.c
_ELEMENT = 1 << 32


def finished_page(
    rows: Callable[[Query], Found], where: list[sa.ColumnElement[bool]], array: int, after: int | None, down: bool, limit: int
) -> list[Job | Array]:
    """At most ``limit`` of them behind ``after``, a number of job << 32 | index. ``array``: of this one the elements; 0: of none.

    ``where``: conditions on the table of jobs; arrays are given whatever these say.
    """
    order = _jobs.id.desc() if down else _jobs.id
    kind = _jobs.id.between(array << 32, array << 32 | 0xFFFFFFFF) if array else _jobs.id % _ELEMENT == 0
    query = sa.select(_jobs.id, _jobs.data).where(*where, kind)
    if after is not None:
        query = query.where(_jobs.id < after if down else _jobs.id > after)
    found: list[tuple[int, Job | Array]] = [
        (row.id, codec.decode_job(row.data)) for row in rows(query.order_by(order).limit(limit))
    ]
    if not array:
        found += _finished_arrays(rows, after, down, limit)
    found.sort(key=lambda entry: entry[0], reverse=down)
    return [entry for _, entry in found[:limit]]


def _finished_arrays(rows: Callable[[Query], Found], after: int | None, down: bool, limit: int) -> list[tuple[int, Job | Array]]:
    query = sa.select(_arrays.job, _arrays.data).where(_arrays.finished_at.is_not(None))
    if after is not None:
        query = query.where(_arrays.job < (after + _ELEMENT - 1) // _ELEMENT if down else _arrays.job > after // _ELEMENT)
    order = _arrays.job.desc() if down else _arrays.job
    return [(row.job << 32, codec.decode_array(row.data)) for row in rows(query.order_by(order).limit(limit))]
