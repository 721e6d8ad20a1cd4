"""What the removal of old history asks: texts that name an environment, specs no longer in use, arrays that are over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from lavad.store import codec

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

PAGE = 5_000


def upgrade() -> None:
    op.add_column("texts", sa.Column("env", sa.Text))
    op.add_column("specs", sa.Column("retired", sa.Double))
    _fill()
    op.create_index("texts_env", "texts", ["env"])
    for name, table, column, where in (
        ("specs_current", "specs", "id", "retired IS NULL"),
        ("specs_retired", "specs", "id", "retired IS NOT NULL"),
        ("arrays_finished", "arrays", "finished_at", "finished_at IS NOT NULL"),
    ):
        op.create_index(name, table, [column], sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _fill() -> None:
    connection = op.get_bind()
    page = sa.text("SELECT job, data FROM texts WHERE job > :job ORDER BY job LIMIT :page")
    put = sa.text("UPDATE texts SET env = :env WHERE job = :job")
    last = -1
    while rows := connection.execute(page, {"job": last, "page": PAGE}).all():
        last = rows[-1].job
        texts = [(row.job, codec.decode_text(row.job, bytes(row.data))) for row in rows]
        named = [{"job": job, "env": text.env} for job, text in texts if text.env]
        if named:
            connection.execute(put, named)
