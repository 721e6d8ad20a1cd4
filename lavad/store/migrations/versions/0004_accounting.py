"""Columns of finished jobs that accounting sums up, and one index that holds all of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_COVERED = ["user", "finished_at", "queue", "project", "state", "submitted", "dispatched", "cpu", "run"]


def upgrade() -> None:
    for name in ("dispatched", "cpu", "run"):
        op.add_column("jobs", sa.Column(name, sa.Double))
    op.add_column("jobs", sa.Column("hosts", sa.Text))
    op.drop_index("jobs_finished_user", "jobs")
    finished = sa.text("finished_at IS NOT NULL")
    op.create_index("jobs_finished_user", "jobs", _COVERED, sqlite_where=finished, postgresql_where=finished)
