"""Columns of finished jobs for their checkpoints and the work that restarts lost, and an index of those that have any."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_COLUMNS = {"checkpoints": sa.Integer, "checkpoint_cost": sa.Double, "restarts": sa.Integer, "work_lost": sa.Double}


def upgrade() -> None:
    for name, kind in _COLUMNS.items():
        op.add_column("jobs", sa.Column(name, kind))
    has = sa.text("checkpoints IS NOT NULL")
    columns = ["finished_at", "user", "queue", "project", *_COLUMNS]
    op.create_index("jobs_checkpoints", "jobs", columns, sqlite_where=has, postgresql_where=has)
