"""PostgreSQL's processes are killed in the middle of commits: the master finds out what became of each, and loses none."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.store.errors import StoreAway
from lavad.store.load import load
from lavad.store.writer import Store
from tests.support.stores.postgres import start_private_postgres, stop_private_postgres
from tests.support.stores.stores import commit, rows_of
from tests.support.wait import wait_until

KILLS = 10


@pytest.fixture
def url() -> Iterator[str]:
    """A server of its own, as one killed process ends all its connections."""
    folder = Path(tempfile.mkdtemp(prefix="lava-test-killed-"))
    folder.chmod(0o711)
    yield start_private_postgres(folder / "server")
    stop_private_postgres(folder / "server")
    shutil.rmtree(folder)


def test_every_commit_is_there_once(url: str) -> None:
    store, cluster = Store.open(url), Cluster()
    store.patience = 60.0
    commit(store, cluster, [ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))])
    chance = random.Random(7)
    for _ in range(KILLS):
        ended = threading.Event()
        killing = threading.Thread(target=_kill, args=(_server(store), chance.uniform(0.0, 0.02), ended))
        killing.start()
        while not ended.is_set():
            _submit(store, cluster, chance.choice((1, 5, 200)))
        killing.join()
        wait_until(lambda: _submit(store, cluster, 1), 60, "PostgreSQL to be there again")
    assert load(store).jobs.rows == cluster.jobs.rows
    store.close()
    rows = rows_of(url)
    assert len(rows["events"]) == cluster.version
    assert len(rows["live_jobs"]) + len(rows["jobs"]) == cluster.next_job - 1


def _server(store: Store) -> int:
    driver = store.connection().connection.driver_connection
    assert driver is not None
    return int(driver.info.backend_pid)


def _kill(pid: int, after: float, ended: threading.Event) -> None:
    ended.wait(after)
    os.kill(pid, signal.SIGKILL)
    ended.set()


def _submit(store: Store, cluster: Cluster, count: int) -> bool:
    """Whether it was committed; False: the database was away before."""
    first = cluster.next_job
    events = [ev.JobSubmitted(at=2.0, key=first + at, spec=1, name="j") for at in range(count)]
    try:
        commit(store, cluster, events, texts=[(first, JobText(command="x"))], answers=[(f"u{first}", b"1")])
    except StoreAway:
        return False
    return True
