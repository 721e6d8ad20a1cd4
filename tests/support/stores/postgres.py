"""A real PostgreSQL for tests: one private server per test process, a fresh database for whoever asks.

Started at the first request and stopped when the process ends.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from lavad.devtools import private_postgres

_numbers = count(1)


def start_private_postgres(folder: str | Path) -> str:
    """URL of a private server whose data lie in ``folder``; end it with ``stop_private_postgres``."""
    return private_postgres.start(folder)


def stop_private_postgres(folder: str | Path) -> None:
    private_postgres.stop(folder)


@cache
def postgres_url() -> str:
    """URL of this process's server."""
    folder = Path(tempfile.mkdtemp(prefix="lava-test-postgres-"))
    # the server's own user must be able to pass
    folder.chmod(0o711)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(stop_private_postgres, folder / "server")
    return start_private_postgres(folder / "server")


def new_database() -> str:
    """URL of an empty database of this process's server."""
    name = f"test_{next(_numbers)}"
    execute(postgres_url(), f"CREATE DATABASE {name}")
    return make_url(postgres_url()).set(database=name).render_as_string(hide_password=False)


def execute(url: str, statement: str) -> None:
    """Run one statement outside a transaction."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement)


def waiting(engine: sa.Engine) -> bool:
    """Whether a connection to this database waits for a lock."""
    with engine.connect() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        return bool(connection.exec_driver_sql(query).scalar())
