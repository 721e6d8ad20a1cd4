"""Rows that have several events: the tables are as before, but code from before cannot read them."""

from __future__ import annotations

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing changes; what was written before is read as it is."""
