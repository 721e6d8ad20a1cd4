"""A table of what the programs of each user need of memory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "learnt",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
