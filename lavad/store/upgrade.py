"""Makes the tables of an empty database, from their descriptions, and brings those of an older version up to date, by migrations.

Rule: only the holder of the masters' lease changes tables that are there, so that no master ever works on tables newer than
itself. Alembic takes long to import, and is where there is something to migrate.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from lavad.store.errors import Fenced, StoreError, StoreRefused, refusal
from lavad.store.schema import HEAD, lease, metadata

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK = 0x6C617661
_VERSIONS = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As Alembic makes it."""
logging.getLogger("alembic.runtime.plugins").setLevel(logging.WARNING)  # it tells of each of its own, at every start


def find_version(connection: sa.Connection) -> str | None:
    """The schema version of a database; None: it has no tables of lava. Call within a transaction."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if version is None else str(version)


def open_schema(connection: sa.Connection, *, create: bool) -> bool:
    """Make the tables in an empty database (``create``), and refuse a store that is newer than this code.

    False: it is of an older version, and left as that, as another master may be at work on it (``migrate``). Raises StoreError.
    """
    try:
        with connection.begin():
            version = find_version(connection)
            if version is None:
                _make(connection, create)
            elif version != HEAD:
                check_known(version)
                return False
            return True
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error


def migrate(connection: sa.Connection, epoch: int) -> str | None:
    """Run what migrations are missing, in one transaction that holds the epoch: the lease can be renewed, and not be taken.

    Returns the version before, None: nothing was missing. Raises ``Fenced`` where the lease is no longer at ``epoch``,
    ``StoreRefused`` for a store that is newer than this code.
    """
    try:
        with connection.begin():
            version = find_version(connection)
            if version == HEAD:
                return None
            check_known(version or "")
            _hold_lease(connection, epoch)
            make_tables(connection)
            return version
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error


def _make(connection: sa.Connection, create: bool) -> None:
    if not create:
        raise StoreRefused(f"store {connection.engine.url.database}: there is no store")
    if connection.dialect.name == "postgresql":
        # when two masters start at once, the second finds the tables created
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    if find_version(connection) is None:
        make_newest(connection)


def _hold_lease(connection: sa.Connection, epoch: int) -> None:
    lock = ""
    if connection.dialect.name == "postgresql":
        # to build an index over many jobs takes longer than any statement of a master may
        connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
        # as every commit: a take-over waits for it, renewals go on however long it takes
        lock = " FOR KEY SHARE"
    held = connection.execute(sa.text(f"SELECT epoch FROM lease WHERE id = 1{lock}")).scalar()
    if held != epoch:
        raise Fenced(f"store: this master's epoch is {epoch}, but the lease is at {held}")


def _config(connection: sa.Connection | None = None) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def check_known(version: str) -> None:
    """Raises StoreRefused for a version that is newer than this code."""
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    try:
        ScriptDirectory.from_config(_config()).get_revision(version)
    except CommandError as error:
        raise StoreRefused(f"store is at version {version}, newer than this lavad ({HEAD})") from error


def make_newest(connection: sa.Connection) -> None:
    """Make in an empty database, within the caller's transaction, what all migrations together make there."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(sa.insert(lease).values(id=1, epoch=0, holder="", expires=0.0))
    _VERSIONS.create(connection)
    connection.execute(sa.insert(_VERSIONS).values(version_num=HEAD))


def make_tables(connection: sa.Connection, version: str = "head") -> None:
    """Run the migrations up to a version, within the caller's transaction."""
    from alembic import command
    from alembic.util import CommandError

    try:
        command.upgrade(_config(connection), version)
    except CommandError as error:
        raise StoreError(f"store: {error}") from error
