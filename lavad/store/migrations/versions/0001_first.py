"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _id(name: str) -> sa.Column[int]:
    return sa.Column(name, _ID, primary_key=True, autoincrement=False)


def _name(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def _data() -> sa.Column[bytes]:
    return sa.Column("data", sa.LargeBinary, nullable=False)


def _index(name: str, table: str, columns: list[str], where: str | None = None) -> None:
    clause: dict[str, Any] = {}
    if where is not None:
        clause = {"sqlite_where": sa.text(where), "postgresql_where": sa.text(where)}
    op.create_index(name, table, columns, **clause)


def upgrade() -> None:
    _history()
    _live()
    op.create_table("meta", _name("name"), sa.Column("value", sa.Text, nullable=False))
    op.create_table("answers", _name("uuid"), sa.Column("at", sa.Double, nullable=False), _data())
    _index("answers_at", "answers", ["at"])
    lease = op.create_table(
        "lease",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.bulk_insert(lease, [{"id": 1, "epoch": 0, "holder": "", "expires": 0.0}])


def _history() -> None:
    op.create_table(
        "events",
        _id("seq"),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("job", sa.BigInteger),
        sa.Column("idx", sa.BigInteger),
        _data(),
    )
    _index("events_job", "events", ["job", "seq"])
    _index("events_at", "events", ["at"])


def _live() -> None:
    op.create_table(
        "jobs",
        _id("id"),
        sa.Column("user", sa.Text, nullable=False),
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.Integer, nullable=False),
        sa.Column("submitted", sa.Double, nullable=False),
        sa.Column("finished_at", sa.Double),
        _data(),
    )
    _index("jobs_live", "jobs", ["id"], "finished_at IS NULL")
    _index("jobs_finished", "jobs", ["finished_at"], "finished_at IS NOT NULL")
    _index("jobs_finished_user", "jobs", ["user", "finished_at"], "finished_at IS NOT NULL")
    op.create_table("arrays", _id("job"), sa.Column("finished_at", sa.Double), _data())
    _index("arrays_live", "arrays", ["job"], "finished_at IS NULL")
    op.create_table("specs", _id("id"), _data())
    op.create_table("texts", _id("job"), _data())
    op.create_table("blobs", _name("hash"), _data())
    op.create_table("hosts", _name("name"), _data())
    op.create_table("queues", _name("name"), _data())
