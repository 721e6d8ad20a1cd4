"""A table of the tokens that users have, so that they can be called back."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("user", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
