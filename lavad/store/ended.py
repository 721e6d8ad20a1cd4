"""Finished jobs that dependency conditions name: which elements are done, which exited with which code."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from lavad.core.job.depend import Ended, exit_code
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState
from lavad.store import codec, schema
from lavad.store.connect import Ask

_jobs = schema.jobs.c
_arrays = schema.arrays.c


def ended_of(ask: Ask, jobs: Iterable[int]) -> dict[int, Ended | None]:
    """Job id to the summary of its finished elements; None: no such job. ``ask`` runs a query."""
    return {job: _ended(ask, job) for job in jobs}


def _ended(ask: Ask, job: int) -> Ended | None:
    arrays = ask(sa.select(_arrays.data).where(_arrays.job == job))
    indices = codec.decode_array(arrays[0].data).indices if arrays else EMPTY
    mine = _jobs.id.between(job << 32, job << 32 | 0xFFFFFFFF), _jobs.finished_at.is_not(None)
    done = ask(sa.select(_jobs.id, _jobs.data).where(*mine, _jobs.state == int(JobState.DONE)))
    exited = ask(sa.select(_jobs.id, _jobs.data).where(*mine, _jobs.state == int(JobState.EXIT)))
    if not done and not exited and not arrays:
        return None
    codes: dict[int, list[int]] = {}
    failed = [_index(row.id) for row in done if (found := codec.decode_job(row.data).outcome) is not None and found.post]
    for row in exited:
        outcome = codec.decode_job(row.data).outcome
        if outcome is not None and outcome.post:
            failed.append(_index(row.id))
        codes.setdefault(exit_code(outcome.status) if outcome is not None else 0, []).append(_index(row.id))
    return Ended(
        done=Ranges.from_indices(_index(row.id) for row in done),
        exited=tuple((code, Ranges.from_indices(found)) for code, found in codes.items()),
        post_failed=Ranges.from_indices(failed),
        indices=indices,
    )


def _index(row: int) -> int:
    return (row & 0xFFFFFFFF) or 1


def ids_named(ask: Ask, name: str, user: str | None, since: float) -> tuple[int, ...]:
    """Finished jobs and arrays of this name (``*`` at its end: any that begins so), oldest first."""
    pattern = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    pattern = pattern.removesuffix("*") + "%" if name.endswith("*") else pattern
    alike = sa.or_(_jobs.name.like(pattern, escape="\\"), _jobs.name.like(pattern + "[%]", escape="\\"))
    query = sa.select(_jobs.id).where(alike, _jobs.finished_at >= since)
    if user is not None:
        query = query.where(_jobs.user == user)
    found = sorted({row.id >> 32 for row in ask(query)})
    return tuple(found if name.endswith("*") else found[-1:])
