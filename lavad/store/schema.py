"""The tables of the store (SQLite and PostgreSQL).

Rule: a change here comes with a migration of its own, and so does one of the records in them (``lavad.store.codec``): one that
changes no table only raises the version, and an older lavad refuses the store.

``events`` is the history; all else is its fold, written in the same transaction. A row of ``jobs`` or ``live_jobs`` has
``id = job << 32 | index`` (not the core's key), so that an array and its elements lie together and one index serves
both.
"""

from __future__ import annotations

import sqlalchemy as sa

HEAD = "0016"
"""The newest migration: what this code needs."""

metadata = sa.MetaData()

meta = sa.Table(
    "meta",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

# BIGINT is no rowid alias in SQLite, and a second index on every insert is what that would cost
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

# some events of one kind and time about elements of one array are one row: ``seq`` is the number of the last
events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", _ID, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("job", sa.BigInteger),
    sa.Column("idx", sa.BigInteger),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("events_job", "job", "seq"),
    sa.Index("events_at", "at"),
)

_PARTIAL: list[tuple[sa.Index, sa.ColumnElement[bool]]] = []


def _partial(name: str, *columns: sa.Column[object], where: sa.ColumnElement[bool]) -> None:
    """An index of the rows for which ``where`` holds."""
    _PARTIAL.append((sa.Index(name, *columns, sqlite_where=where), where))


def use_postgresql() -> None:
    """The tables are used for PostgreSQL, whose part of SQLAlchemy takes long to import and is not needed for SQLite."""
    for index, where in _PARTIAL:
        index.dialect_options["postgresql"]["where"] = where


live_jobs = sa.Table(
    "live_jobs",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Jobs that have not finished. Apart from the others, as nothing but a start of lavad reads them: they need no other index."""

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=False),
    sa.Column("user", sa.Text, nullable=False),
    sa.Column("queue", sa.Text, nullable=False),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("state", sa.Integer, nullable=False),
    sa.Column("submitted", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double),
    sa.Column("data", sa.LargeBinary, nullable=False),
    # first seconds since the epoch, then seconds, then " host1 host2 "
    sa.Column("dispatched", sa.Double),
    sa.Column("cpu", sa.Double),
    sa.Column("run", sa.Double),
    sa.Column("hosts", sa.Text),
    # seconds of slots and, of all attempts of jobs that had GPUs, of GPUs; J
    sa.Column("slot_seconds", sa.Double),
    sa.Column("gpu_held", sa.Double),
    sa.Column("gpu_used", sa.Double),
    sa.Column("gpu_idle", sa.Double),
    sa.Column("gpu_energy", sa.Double),
    # of jobs that made checkpoints or were to: how many, seconds that they took, restarts, seconds of work lost
    sa.Column("checkpoints", sa.Integer),
    sa.Column("checkpoint_cost", sa.Double),
    sa.Column("restarts", sa.Integer),
    sa.Column("work_lost", sa.Double),
)
"""Jobs that have finished: ``finished_at`` is never NULL."""
_FINISHED = jobs.c.finished_at.is_not(None)
_partial("jobs_finished", jobs.c.finished_at, where=_FINISHED)
_partial(
    "jobs_finished_user",
    jobs.c.user,
    jobs.c.finished_at,
    jobs.c.queue,
    jobs.c.project,
    jobs.c.state,
    jobs.c.submitted,
    jobs.c.dispatched,
    jobs.c.cpu,
    jobs.c.run,
    where=_FINISHED,
)

_GPUS = jobs.c.gpu_held.is_not(None)
_partial(
    "jobs_gpus",
    jobs.c.finished_at,
    jobs.c.user,
    jobs.c.queue,
    jobs.c.project,
    jobs.c.gpu_held,
    jobs.c.gpu_used,
    jobs.c.gpu_idle,
    jobs.c.gpu_energy,
    where=_GPUS,
)

_CHECKPOINTS = jobs.c.checkpoints.is_not(None)
_partial(
    "jobs_checkpoints",
    jobs.c.finished_at,
    jobs.c.user,
    jobs.c.queue,
    jobs.c.project,
    jobs.c.checkpoints,
    jobs.c.checkpoint_cost,
    jobs.c.restarts,
    jobs.c.work_lost,
    where=_CHECKPOINTS,
)

arrays = sa.Table(
    "arrays",
    metadata,
    sa.Column("job", _ID, primary_key=True, autoincrement=False),
    sa.Column("finished_at", sa.Double),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
_partial(
    "arrays_live",
    arrays.c.job,
    where=arrays.c.finished_at.is_(None),
)
_OVER = arrays.c.finished_at.is_not(None)
_partial("arrays_finished", arrays.c.finished_at, where=_OVER)

specs = sa.Table(
    "specs",
    metadata,
    sa.Column("id", _ID, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("retired", sa.Double),
)
"""``retired``: when it was seen that the master no longer has the spec in memory, so that nothing new names it."""
_CURRENT = specs.c.retired.is_(None)
_RETIRED = specs.c.retired.is_not(None)
_partial("specs_current", specs.c.id, where=_CURRENT)
_partial("specs_retired", specs.c.id, where=_RETIRED)

texts = sa.Table(
    "texts",
    metadata,
    sa.Column("job", _ID, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("env", sa.Text),
    sa.Index("texts_env", "env"),
)
"""``env``: the hash of the environment that the text names."""

attachments = sa.Table(
    "attachments",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""Data attached to messages (``bpost -a``): ``id`` as in ``jobs``."""

blobs = sa.Table(
    "blobs",
    metadata,
    sa.Column("hash", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

hosts = sa.Table(
    "hosts",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

queues = sa.Table(
    "queues",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

charges = sa.Table(
    "charges",
    metadata,
    sa.Column("queue", sa.Text, primary_key=True),
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("ugroup", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

learnt = sa.Table(
    "learnt",
    metadata,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""What the programs of each user need of memory."""

paces = sa.Table(
    "paces",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""How long jobs of each service class with goals take."""

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("user", sa.Text, primary_key=True),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
"""The tokens that each user has, by their ids: none of them can be made of this."""

groups = sa.Table(
    "groups",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("gone", sa.Boolean, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

cycles = sa.Table(
    "cycles",
    metadata,
    sa.Column("version", _ID, primary_key=True, autoincrement=False),
    sa.Column("first", sa.BigInteger, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("seed", sa.Text, nullable=False),
    sa.Column("anew", sa.Boolean, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)
# in the words of its migration, for which SQLAlchemy has others in SQLite
_partial("cycles_anew", cycles.c.at, where=sa.literal_column("anew IS true", sa.Boolean))

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("gone", sa.Boolean, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
)

answers = sa.Table(
    "answers",
    metadata,
    sa.Column("uuid", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("answers_at", "at"),
)

lease = sa.Table(
    "lease",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
)
