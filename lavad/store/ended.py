"""Finished jobs that dependency conditions name: which elements are done, which exited with which code.

Rule: few queries for many jobs, and the rows of a large array are read in pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import sqlalchemy as sa

from lavad.core.job.depend import Ended, EndedAlike, Jobs, exit_code, jobs_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState
from lavad.store import codec, schema
from lavad.store.connect import Ask, among

_jobs = schema.jobs.c
_arrays = schema.arrays.c
_job = _jobs.id.op(">>")(sa.literal(32, sa.Integer)).label("job")  # PostgreSQL shifts by an integer, not by a bigint
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
    rows = ask(sa.select(_arrays.job, _arrays.data).where(among(_arrays.job, jobs)))
    indices = {row.job: codec.decode_array(row.data).indices for row in rows}
    plain = [job << 32 for job in jobs if job not in indices]
    ended: dict[int, Ended | None] = dict.fromkeys(jobs)
    for row in ask(_finished.where(among(_jobs.id, plain))) if plain else ():
        ended[row.id >> 32] = _one(row.state, *codec.outcome_of(row.data))
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
    """Of an array, by the rows of its elements."""
    done: list[int] = []
    failed: list[int] = []
    codes: dict[int, list[int]] = {}
    for row in rows:
        index, (status, post) = row.id & 0xFFFFFFFF, codec.outcome_of(row.data)
        if post:
            failed.append(index)
        if row.state == int(JobState.DONE):
            done.append(index)
        else:
            codes.setdefault(exit_code(status), []).append(index)
    return Ended(
        done=Ranges.from_indices(done),
        exited=tuple((code, Ranges.from_indices(found)) for code, found in codes.items()),
        post_failed=Ranges.from_indices(failed),
        indices=indices,
    )


def id_named(ask: Ask, name: str, user: str | None, since: float) -> tuple[int, ...]:
    """The newest finished job or array of this name; (): there is none."""
    return tuple(row.job for row in ask(sa.select(_job).where(*_named(name, user, since)).order_by(_job.desc()).limit(1)))


def named_alike(ask: Ask, name: str, user: str | None, since: float, most: int) -> tuple[Jobs, EndedAlike]:
    """Finished jobs and arrays whose names begin so, and how those of them ended that are no arrays. Of each kind no more than
    ``most``: the newest arrays, and the jobs that ended last.
    """
    named, index = _named(name, user, since, more="%"), _jobs.id.op("&")(0xFFFFFFFF)
    arrays = sa.select(_job).distinct().where(*named, index != 0).order_by(_job.desc()).limit(most)
    jobs = [row.job for row in ask(arrays)]
    query = sa.select(_jobs.id, _jobs.state, _jobs.finished_at, _jobs.data).where(*named, index == 0)
    query = query.order_by(_jobs.finished_at.desc(), _jobs.id.desc())
    alike: dict[tuple[int, int, bool], list[int]] = {}
    found, rows = 0, ask(query.limit(min(_PAGE, most)))
    while rows:
        for row in rows:
            alike.setdefault((row.state, *codec.outcome_of(row.data)), []).append(row.id >> 32)
        found, last = found + len(rows), rows[-1]
        before = sa.or_(_jobs.finished_at < last.finished_at, _jobs.id < last.id)
        rows = ask(query.where(_jobs.finished_at <= last.finished_at, before).limit(min(_PAGE, most - found)))
    ranges = tuple((Ranges.from_indices(those), _one(*how)) for how, those in alike.items())
    return jobs_of(chain(jobs, *alike.values())), ranges


def _one(state: int, status: int, post: bool) -> Ended:
    """The summary of a job that is no array."""
    own, failed = Ranges.span(1, 1), Ranges.span(1, 1) if post else EMPTY
    if state == int(JobState.DONE):
        return Ended(done=own, post_failed=failed)
    return Ended(exited=((exit_code(status), own),), post_failed=failed)


def _named(name: str, user: str | None, since: float, more: str = "") -> list[sa.ColumnElement[bool]]:
    """Of jobs of this name, elements of arrays of it too. ``more``: what may follow."""
    pattern = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + more
    alike = sa.or_(_jobs.name.like(pattern, escape="\\"), _jobs.name.like(pattern + "[%]", escape="\\"))
    return [alike, _jobs.finished_at >= since, *([] if user is None else [_jobs.user == user])]
