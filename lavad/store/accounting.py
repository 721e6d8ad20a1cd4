"""Accounting of finished jobs (bacct): sums computed by the database, and the jobs themselves in pages."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums
from lavad.core.job.job import Job
from lavad.core.lang.states import JobState
from lavad.store import codec, schema
from lavad.store.asked import Asked, Share, Sums, Wasteful
from lavad.store.connect import Ask, Query, among

PAGE = 500
IDS = 50_000
Span = tuple[int, int]
"""The first and the last number of rows that follow each other."""
_jobs = schema.jobs.c


def sums(ask: Ask, asked: Asked) -> Sums:
    """The sums of all jobs asked for."""
    cpu, run, wait = _CPU, _Whole(sa.func.coalesce(_jobs.run, 0.0)), _WAIT
    turnaround = _Whole(_jobs.finished_at) - _Whole(_jobs.submitted)
    hog = sa.case((turnaround > 0, cpu / turnaround), else_=0.0)
    expansion = 1.0 * _at_least_one(turnaround) / _at_least_one(run)
    figures = (cpu, wait, turnaround, run, hog, expansion)
    kinds = (sa.func.sum, sa.func.max, sa.func.min, sa.func.avg)
    query: Query = sa.select(
        sa.func.sum(sa.case((_jobs.state == int(JobState.DONE), 1), else_=0)),
        sa.func.sum(sa.case((_jobs.state == int(JobState.EXIT), 1), else_=0)),
        *(kind(figure) for figure in figures for kind in kinds),
        sa.func.min(_jobs.finished_at),
        sa.func.max(_jobs.finished_at),
    ).where(*_conditions(asked))
    row = [float(value or 0.0) for value in ask(_of_keys(query, asked.keys))[0]]
    fours = [tuple(row[at : at + 4]) for at in range(2, 26, 4)]
    return Sums(
        done=int(row[0]),
        exited=int(row[1]),
        cpu=fours[0],
        wait=fours[1],
        turnaround=fours[2],
        run=fours[3],
        hog=fours[4],
        expansion=fours[5],
        begin=row[26],
        end=row[27],
        gpus=GpuSums(*_sums_of(ask, asked, _GPU_COLUMNS)),
        checkpoints=_checkpoints(_sums_of(ask, asked, _CHECKPOINT_COLUMNS)),
    )


class _Whole(FunctionElement[int]):
    """A time without its part of a second: the sums of times are those of what -l shows of each job, as LSF counts them."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(_Whole)
def _floor(element: _Whole, compiler: SQLCompiler, **kw: object) -> str:
    return f"FLOOR({compiler.process(element.clauses, **kw)})"


@compiles(_Whole, "sqlite")
def _truncated(element: _Whole, compiler: SQLCompiler, **kw: object) -> str:
    return f"CAST({compiler.process(element.clauses, **kw)} AS INTEGER)"


def _at_least_one(seconds: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.case((seconds > 1, seconds), else_=1)


_WAIT = _Whole(sa.func.coalesce(_jobs.dispatched, _jobs.finished_at)) - _Whole(_jobs.submitted)
_SLOTS = sa.func.coalesce(_jobs.slot_seconds, _jobs.run, 0.0)
_CPU = sa.func.coalesce(_jobs.cpu, 0.0)
_WASTED = sa.case((_SLOTS > _CPU, _SLOTS - _CPU), else_=0.0)
_GPU_COLUMNS = (_jobs.gpu_held, _jobs.gpu_used, _jobs.gpu_idle, _jobs.gpu_energy)
_CHECKPOINT_COLUMNS = (_jobs.checkpoints, _jobs.checkpoint_cost, _jobs.restarts, _jobs.work_lost)
_Columns = tuple[sa.Column[float] | sa.Column[int], ...]


def _sums_of(ask: Ask, asked: Asked, columns: _Columns) -> list[float]:
    """Sums of columns that few jobs have, in a query of its own: an index has those that have the first, and nothing else."""
    query: Query = sa.select(*(sa.func.sum(column) for column in columns))
    (row,) = ask(_of_keys(query.where(columns[0].is_not(None), *_conditions(asked)), asked.keys))
    return [float(value or 0.0) for value in row]


def _checkpoints(sums_of: list[float]) -> CheckpointSums:
    made, cost, restarts, lost = sums_of
    return CheckpointSums(int(made), cost, int(restarts), lost)


def shares(ask: Ask, asked: Asked) -> list[Share]:
    """The jobs asked for by user, project and queue. Of jobs that ended before a store knew their slots, one is counted."""
    columns = (_jobs.user, _jobs.project, _jobs.queue)
    exited = sa.func.sum(sa.case((_jobs.state == int(JobState.EXIT), 1), else_=0))
    times = (exited, sa.func.sum(_WAIT), sa.func.max(_WAIT), sa.func.min(_jobs.finished_at))
    of_few = map(sa.func.sum, (*_GPU_COLUMNS, *_CHECKPOINT_COLUMNS))
    sums_of = (sa.func.sum(_SLOTS), sa.func.sum(_CPU), sa.func.sum(_WASTED), *times, sa.func.count(_jobs.gpu_held), *of_few)
    query = sa.select(*columns, sa.func.count(), *sums_of).where(*_conditions(asked)).group_by(*columns)
    found = []
    for user, project, queue, jobs, *figures in ask(query):
        held, cpu, wasted, exits, wait, longest, first, gpu_jobs, *sums = (float(value or 0.0) for value in figures)
        gpus, made = GpuSums(*sums[:4]), _checkpoints(sums[4:])
        of_gpus = int(gpu_jobs), gpus, made
        found.append(Share(user, project, queue, int(jobs), held, cpu, *of_gpus, int(exits), wait, longest, first, wasted))
    return found


def wasteful(ask: Ask, asked: Asked, most: int, gpus: bool) -> list[Wasteful]:
    """The jobs that wasted the most slots without CPU time, or (``gpus``) GPUs without use, the worst first."""
    held = sa.func.coalesce(_jobs.gpu_held, 0.0) if gpus else _SLOTS
    lost = sa.func.coalesce(_jobs.gpu_idle, 0.0) if gpus else _WASTED
    query: Query = sa.select(_jobs.id, _jobs.user, _jobs.project, _jobs.queue, _jobs.name, held, lost)
    where = [*_conditions(asked), lost > 0, *([_jobs.gpu_held.is_not(None)] if gpus else [])]
    rows = ask(query.where(*where).order_by(lost.desc(), _jobs.id).limit(most))
    return [
        Wasteful(codec.row_id(row), user or "", project or "", queue or "", name, float(had), float(wasted))
        for row, user, project, queue, name, had, wasted in rows
    ]


def pages(ask: Ask, asked: Asked) -> Iterator[list[Job]]:
    """The jobs themselves, by id, a page at a time."""
    for ids in _ids(ask, asked):
        for at in range(0, len(ids), PAGE):
            query = sa.select(_jobs.data).where(among(_jobs.id, ids[at : at + PAGE]))
            yield [codec.decode_job(row.data) for row in ask(query.order_by(_jobs.id))]


def _ids(ask: Ask, asked: Asked) -> Iterator[list[int]]:
    """Their row ids in order, many at a time, as a database that uses an index by user sorts again for each query."""
    query: Query = sa.select(_jobs.id).where(*_conditions(asked)).order_by(_jobs.id)
    for spans in _together(_spans(asked.keys, _arrays(ask, asked.keys))):
        if len(spans) > 1:
            yield [row.id for row in ask(_of_spans(query, spans))]
            continue
        ((first, last),) = spans
        while first <= last:
            rows = ask(query.where(_jobs.id.between(first, last)).limit(IDS))
            if not rows:
                break
            first = rows[-1].id + 1
            yield [row.id for row in rows]


def _arrays(ask: Ask, keys: tuple[int, ...]) -> frozenset[int]:
    """Which of these jobs are arrays."""
    jobs = [key for key in keys if not key >> 32]
    table = schema.arrays.c
    queries = (sa.select(table.job).where(among(table.job, jobs[at : at + PAGE])) for at in range(0, len(jobs), PAGE))
    return frozenset(row.job for query in queries for row in ask(query))


def _together(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """The spans in their order, as many in one list as have no more than IDS rows together."""
    some: list[Span] = []
    room = IDS
    for first, last in spans:
        size = last - first + 1
        if some and size > room:
            yield some
            some, room = [], IDS
        some.append((first, last))
        room -= size
    if some:
        yield some


def _spans(keys: tuple[int, ...], arrays: Container[int] | None = None) -> list[Span]:
    """Where the rows of these jobs and elements are, in order and each once; those that follow each other are one span.

    ``arrays``: which of the jobs have elements; None: any of them may.
    """
    if not keys:
        return [(0, (1 << 63) - 1)]
    many = {key for key in keys if not key >> 32 and (arrays is None or key in arrays)}
    rows = sorted({(key << 32, key << 32 | 0xFFFFFFFF) if key in many else (codec.row_id(key),) * 2 for key in keys})
    spans = rows[:1]
    for first, last in rows[1:]:
        begin, end = spans[-1]
        if first > end + 1:
            spans.append((first, last))
        else:
            spans[-1] = begin, max(end, last)
    return spans


_DIGITS = 19
"""Of the number of a row."""


class _Listed(FunctionElement[str]):
    """The strings of a list in JSON, as rows: one parameter of a query, of which a database takes some 32,000 at least."""

    inherit_cache = True


@compiles(_Listed)
def _elements(element: _Listed, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **kw)} AS JSON))"


@compiles(_Listed, "sqlite")
def _each(element: _Listed, compiler: SQLCompiler, **kw: object) -> str:
    return f"json_each({compiler.process(element.clauses, **kw)})"


def _of_keys(query: Query, keys: tuple[int, ...]) -> Query:
    """The query about these jobs and elements alone: joined with where they are, as there is no bound on how many those are."""
    return _of_spans(query, _spans(keys)) if keys else query


def _of_spans(query: Query, found: Sequence[Span]) -> Query:
    words = json.dumps([f"{first:0{_DIGITS}}{last:0{_DIGITS}}" for first, last in found])
    listed = _Listed(sa.literal(words, sa.Text)).table_valued(sa.column("value", sa.Text))
    first, last = sa.func.substr(listed.c.value, 1, _DIGITS), sa.func.substr(listed.c.value, _DIGITS + 1)
    row = sa.BigInteger
    spans = sa.select(sa.cast(first, row).label("first_row"), sa.cast(last, row).label("last_row")).cte("asked")
    return query.select_from(spans.join(schema.jobs, _jobs.id.between(spans.c.first_row, spans.c.last_row)))


def _on_one_of(hosts: tuple[str, ...]) -> sa.ColumnElement[bool]:
    named = sa.values(sa.column("pattern", sa.Text), name="named").data([(f"% {_escaped(host)} %",) for host in hosts]).cte()
    return sa.select(named.c.pattern).where(_jobs.hosts.like(named.c.pattern, escape="\\")).exists()


def _conditions(asked: Asked) -> list[sa.ColumnElement[bool]]:
    where: list[sa.ColumnElement[bool]] = [_jobs.finished_at.is_not(None)]
    # with job ids given, an index by user or time would make the database read all jobs of the user, or of that time
    user = sa.func.coalesce(_jobs.user, "") if asked.keys else _jobs.user
    finished = sa.func.coalesce(_jobs.finished_at, 0.0) if asked.keys else _jobs.finished_at
    pairs = ((user, asked.users), (_jobs.queue, asked.queues), (_jobs.project, asked.projects))
    where += [column.in_(values) for column, values in pairs if values]
    if asked.but_users:
        where.append(sa.or_(user.is_(None), user.not_in(asked.but_users)))
    if asked.states:
        where.append(_jobs.state.in_([int(state) for state in asked.states]))
    if asked.hosts:
        where.append(_on_one_of(asked.hosts))
    if asked.names:
        where.append(sa.or_(*(_named(name) for name in asked.names)))
    windows = ((finished, asked.completed), (_jobs.submitted, asked.submitted), (_jobs.dispatched, asked.dispatched))
    where += [column.between(*window) for column, window in windows if window is not None]
    return where


def _named(name: str) -> sa.ColumnElement[bool]:
    pattern = _escaped(name).replace("*", "%")
    plain = _jobs.name.like(pattern, escape="\\")
    return sa.or_(plain, _jobs.name.like(pattern + "[%]", escape="\\"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
