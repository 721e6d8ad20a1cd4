"""A table of the jobs that have not finished, of an id and a record. Rows of ``events`` may have several from now on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "live_jobs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.execute("INSERT INTO live_jobs (id, data) SELECT id, data FROM jobs WHERE finished_at IS NULL ORDER BY id")
    op.drop_index("jobs_live", "jobs")
    op.execute("DELETE FROM jobs WHERE finished_at IS NULL")
