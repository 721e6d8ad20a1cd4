"""Columns of finished jobs for what they held and used of slots and GPUs, and an index of those that had GPUs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_GPUS = ["gpu_held", "gpu_used", "gpu_idle", "gpu_energy"]


def upgrade() -> None:
    for name in ("slot_seconds", *_GPUS):
        op.add_column("jobs", sa.Column(name, sa.Double))
    had = sa.text("gpu_held IS NOT NULL")
    columns = ["finished_at", "user", "queue", "project", *_GPUS]
    op.create_index("jobs_gpus", "jobs", columns, sqlite_where=had, postgresql_where=had)
