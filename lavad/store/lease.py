"""The masters' lease: one row, on the database's clock.

Rule: whoever takes it over raises the epoch, and every commit checks it.
Not an advisory lock: that one dies with a connection, and lives on in a frozen holder.
"""

from __future__ import annotations

import sqlalchemy as sa

from lavad.store.connect import connect
from lavad.store.errors import refusal

_NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch FROM clock_timestamp())::double precision",
}


class Lease:
    """The lease of one store, on a connection per call: a renewal waits for no commit of PostgreSQL."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._now = _NOW[engine.dialect.name]
        # a take-over must wait for a commit under way (FOR KEY SHARE), a renewal must not
        self._for_update = " FOR UPDATE" if engine.dialect.name == "postgresql" else ""

    def acquire(self, holder: str, seconds: float) -> int | None:
        """Take the lease if it is free, expired or this holder's own: the new epoch; None: somebody else holds it.

        ``holder`` must name one master (not just a host): the same holder is taken for a restarted one.
        """
        try:
            with connect(self._engine) as connection, connection.begin():
                held, expires, now = connection.execute(
                    sa.text(f"SELECT holder, expires, {self._now} FROM lease WHERE id = 1{self._for_update}")
                ).one()
                if held not in ("", holder) and now < expires:
                    return None
                epoch = connection.execute(
                    sa.text("UPDATE lease SET epoch = epoch + 1, holder = :holder, expires = :at RETURNING epoch"),
                    {"holder": holder, "at": now + seconds},
                ).scalar_one()
                return int(epoch)
        except sa.exc.DBAPIError as error:
            raise refusal(error) from error

    def renew(self, epoch: int, seconds: float) -> bool:
        """Hold on for ``seconds`` from now; False: another master has taken it."""
        text = f"UPDATE lease SET expires = {self._now} + :seconds WHERE epoch = :epoch AND holder <> ''"
        return self._change(text, {"epoch": epoch, "seconds": seconds})

    def release(self, epoch: int) -> bool:
        """Give it up, so that another master need not wait; False: it is another's already."""
        return self._change("UPDATE lease SET holder = '', expires = 0 WHERE epoch = :epoch", {"epoch": epoch})

    def find_holder(self) -> tuple[str, float] | None:
        """Holder and seconds left (below 0: expired); None: free."""
        try:
            with connect(self._engine) as connection, connection.begin():
                query = f"SELECT holder, expires - ({self._now}) FROM lease WHERE id = 1"
                holder, left = connection.execute(sa.text(query)).one()
        except sa.exc.DBAPIError as error:
            raise refusal(error) from error
        return (str(holder), float(left)) if holder else None

    def _change(self, text: str, values: dict[str, object]) -> bool:
        try:
            with connect(self._engine) as connection, connection.begin():
                return connection.execute(sa.text(text), values).rowcount == 1
        except sa.exc.DBAPIError as error:
            raise refusal(error) from error
