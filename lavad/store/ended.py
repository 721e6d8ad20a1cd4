"""Finished jobs that dependency conditions name: which elements are done, which exited with which code.

Rule: few queries for many jobs, and the rows of a large array are read in pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sqlalchemy as sa

from lavad.core.job.depend import Ended, exit_code
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState
from lavad.store import codec, schema
from lavad.store.connect import Ask

_jobs = schema.jobs.c
_arrays = schema.arrays.c
_finished = sa.select(_jobs.id, _jobs.state, _jobs.data).where(_jobs.finished_at.is_not(None))
Row = sa.Row[tuple[int, int, bytes]]
_AT_ONCE = 500
"""Jobs that one query names."""
_PAGE = 5_000
"""Elements that one query reads."""


def ended_of(ask: Ask, jobs: Iterable[int]) -> dict[int, Ended | None]:
    """Job id to the summary of its finished elements; None: no such job. ``ask`` runs a query."""
    wanted = list(jobs)
    found: dict[int, Ended | None] = {}
    for at in range(0, len(wanted), _AT_ONCE):
        found |= _ended_of(ask, wanted[at : at + _AT_ONCE])
    return found


def _ended_of(ask: Ask, jobs: list[int]) -> dict[int, Ended | None]:
    rows = ask(sa.select(_arrays.job, _arrays.data).where(_arrays.job.in_(jobs)))
    indices = {row.job: codec.decode_array(row.data).indices for row in rows}
    plain = [job << 32 for job in jobs if job not in indices]
    ended: dict[int, Ended | None] = dict.fromkeys(jobs)
    for row in ask(_finished.where(_jobs.id.in_(plain))) if plain else ():
        ended[row.id >> 32] = _summary([row], EMPTY)
    return ended | {job: _summary(_elements(ask, job), own) for job, own in indices.items()}


def _elements(ask: Ask, job: int) -> Iterator[Row]:
    """The rows of the finished elements of an array."""
    last, end, more = job << 32, job << 32 | 0xFFFFFFFF, True
    while more:
        rows = ask(_finished.where(_jobs.id > last, _jobs.id <= end).order_by(_jobs.id).limit(_PAGE))
        yield from rows
        if more := len(rows) == _PAGE:
            last = rows[-1].id


def _summary(rows: Iterable[Row], indices: Ranges) -> Ended:
    done: list[int] = []
    failed: list[int] = []
    codes: dict[int, list[int]] = {}
    for row in rows:
        index, outcome = (row.id & 0xFFFFFFFF) or 1, codec.decode_job(row.data).outcome
        if outcome is not None and outcome.post:
            failed.append(index)
        if row.state == int(JobState.DONE):
            done.append(index)
        else:
            codes.setdefault(exit_code(outcome.status) if outcome is not None else 0, []).append(index)
    return Ended(
        done=Ranges.from_indices(done),
        exited=tuple((code, Ranges.from_indices(found)) for code, found in codes.items()),
        post_failed=Ranges.from_indices(failed),
        indices=indices,
    )


def ids_named(ask: Ask, name: str, user: str | None, since: float, most: int) -> tuple[int, ...]:
    """Finished jobs and arrays of this name, oldest first: the newest, or those of ``name*`` (any that begins so), of which the
    newest ``most``.
    """
    pattern = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = pattern.removesuffix("*") + "%" if name.endswith("*") else pattern
    alike = sa.or_(_jobs.name.like(pattern, escape="\\"), _jobs.name.like(pattern + "[%]", escape="\\"))
    job = _jobs.id.op(">>")(sa.literal(32, sa.Integer)).label("job")  # PostgreSQL shifts by an integer, not by a bigint
    query = sa.select(job).distinct().where(alike, _jobs.finished_at >= since)
    if user is not None:
        query = query.where(_jobs.user == user)
    query = query.order_by(job.desc()).limit(most if name.endswith("*") else 1)
    return tuple(row.job for row in reversed(ask(query)))
