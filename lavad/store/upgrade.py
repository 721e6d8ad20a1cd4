"""Migrates a database to the current schema. Alembic is imported only when there is something to migrate."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from lavad.store.errors import StoreError, StoreRefused, refusal
from lavad.store.schema import HEAD

_LOCK = 0x6C617661


def find_version(connection: sa.Connection) -> str | None:
    """The schema version of a database; None: it has no tables of lava. Call within a transaction."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if version is None else str(version)


def upgrade(connection: sa.Connection, *, create: bool) -> None:
    """Run what migrations are missing, in one transaction; ``create``: also on an empty database.

    Raises ``StoreError``.
    """
    try:
        with connection.begin():
            _upgrade(connection, create)
    except sa.exc.DBAPIError as error:
        raise refusal(error) from error


def _upgrade(connection: sa.Connection, create: bool) -> None:
    if find_version(connection) == HEAD:
        return
    if connection.dialect.name == "postgresql":
        # when two masters start at once, the second finds the tables created
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = find_version(connection)
    if version == HEAD:
        return
    if version is None and not create:
        raise StoreRefused(f"store {connection.engine.url.database}: there is no store")
    _migrate(connection, version)


def _migrate(connection: sa.Connection, version: str | None) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        if version is not None:
            ScriptDirectory.from_config(config).get_revision(version)
    except CommandError as error:
        raise StoreRefused(f"store is at version {version}, newer than this lavad ({HEAD})") from error
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(f"store: {error}") from error
