"""No table changes: records have states and fields (jobs of chunks) that a lavad before this version does not read."""

from __future__ import annotations

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Only the version rises, so that an older lavad refuses the store instead of reading it wrongly."""
