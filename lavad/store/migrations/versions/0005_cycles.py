"""What the scheduler's plans were decided on, for a replay."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "cycles",
        sa.Column("version", number, primary_key=True, autoincrement=False),
        sa.Column("first", sa.BigInteger, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("seed", sa.Text, nullable=False),
        sa.Column("anew", sa.Boolean, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    anew = sa.text("anew IS true")
    op.create_index("cycles_anew", "cycles", ["at"], sqlite_where=anew, postgresql_where=anew)
