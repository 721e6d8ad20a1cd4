"""No table changes: hosts tell what they have, and roles have a kind, as no lavad before this version knows them."""

from __future__ import annotations

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Only the version rises, so that an older lavad refuses the store instead of reading it wrongly."""
