"""The masters' lease: one row, on the database's clock.

Rule: whoever takes it over raises the epoch, and every commit checks it.
Not an advisory lock: that one dies with a connection, and lives on in a frozen holder.

PostgreSQL ends a transaction that idles, but not one of which a part of a statement has arrived and no more: a master that is
frozen while it sends a commit would keep the row. Whoever finds the lease over ends that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from lavad.store.errors import lost, refusal

T = TypeVar("T")
log = logging.getLogger(__name__)

_NOW = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",
    "postgresql": "extract(epoch FROM clock_timestamp())::double precision",
}
_FROZEN_S = 3.0
"""For so long PostgreSQL has heard nothing in the middle of a commit."""
# a transaction that only reads the row, of a backup or a query, has another lock; a role may end its own connections
_END_FROZEN = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND state <> 'idle' AND wait_event = 'ClientRead'
      AND query_start < clock_timestamp() - make_interval(secs => :seconds)
      AND pid IN (SELECT pid FROM pg_locks
                  WHERE relation = 'lease'::regclass AND mode IN ('RowShareLock', 'RowExclusiveLock') AND granted)
"""


def _shown(holder: str) -> str:
    """Without what tells a master from others of its name (``lavad.run_lock``)."""
    name, _, _ = holder.partition(" ")
    return name if "/" in name else holder


class Lease:
    """The lease of one store, on a connection per call: a renewal waits for no commit of PostgreSQL."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.alone = engine.dialect.name == "sqlite"
        """Whether no other master can use this store, as its file is locked."""
        self._now = _NOW[engine.dialect.name]
        # a take-over must wait for a commit under way (FOR KEY SHARE), a renewal must not
        self._for_update = " FOR UPDATE" if engine.dialect.name == "postgresql" else ""

    def acquire(self, holder: str, seconds: float) -> int | None:
        """Take the lease if it is free, expired or this holder's own. Returns the new epoch; None: another holder has it.

        ``holder`` names one master, of which no earlier process is left (``lavad.run_lock``). The lease of a store that only
        one process can use has no other holder.
        """
        columns = f"SELECT holder, expires, {self._now} FROM lease WHERE id = 1"
        look = sa.text(columns + self._for_update)
        take = sa.text("UPDATE lease SET epoch = epoch + 1, holder = :holder, expires = :at RETURNING epoch")

        def may_take(held: str, expires: float, now: float) -> bool:
            return self.alone or held in ("", holder) or now >= expires

        def work(connection: sa.Connection) -> int | None:
            held, expires, now = connection.execute(look).one()
            if not may_take(held, expires, now):
                return None
            return int(connection.execute(take, {"holder": holder, "at": now + seconds}).scalar_one())

        if self._for_update:
            # without a lock, which the commits of the master would wait for
            found = self._transact(lambda connection: connection.execute(sa.text(columns)).one())
            if not may_take(*found):
                return None
            self._end_frozen()
        return self._transact(work)

    def _end_frozen(self) -> None:
        """End the commits of which PostgreSQL has heard nothing for a while."""
        ended = self._transact(lambda connection: connection.execute(sa.text(_END_FROZEN), {"seconds": _FROZEN_S}).scalar_one())
        if ended:
            log.warning("%d commits of a master from which nothing was heard for %g s are ended", ended, _FROZEN_S)

    def renew(self, epoch: int, seconds: float) -> bool:
        """Renew for ``seconds`` from now; False: another master has taken it."""
        text = f"UPDATE lease SET expires = {self._now} + :seconds WHERE epoch = :epoch AND holder <> ''"
        return self._change(text, {"epoch": epoch, "seconds": seconds})

    def release(self, epoch: int) -> bool:
        """Release the lease, so that another master need not wait; False: another master has it already."""
        return self._change("UPDATE lease SET holder = '', expires = 0 WHERE epoch = :epoch", {"epoch": epoch})

    def find_holder(self) -> tuple[str, float] | None:
        """Holder, as ``HOST/NUMBER`` where it is a master, and seconds left (below 0: expired); None: free."""
        query = sa.text(f"SELECT holder, expires - ({self._now}) FROM lease WHERE id = 1")
        holder, left = self._transact(lambda connection: tuple(connection.execute(query).one()))
        return (_shown(str(holder)), float(left)) if holder else None

    def _change(self, text: str, values: dict[str, object]) -> bool:
        return self._transact(lambda connection: connection.execute(sa.text(text), values).rowcount == 1)

    def _transact(self, work: Callable[[sa.Connection], T]) -> T:
        """Run a transaction, again on a new connection if a pooled one was dead: all of these may be repeated safely."""
        for last in (False, True):
            try:
                with self._engine.connect() as connection, connection.begin():
                    return work(connection)
            except sa.exc.DBAPIError as error:
                if last or not lost(error):
                    raise refusal(error) from error
        raise AssertionError
