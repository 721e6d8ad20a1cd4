"""The history of fair share: what each account used, decayed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "charges",
        sa.Column("queue", sa.Text, primary_key=True),
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("ugroup", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
