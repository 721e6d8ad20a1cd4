"""The process that writes lsb.events and lsb.acct: what it writes of long commands, and the memory that this takes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from lavad.core import events as ev
from lavad.core.lang.bounds import MAX_COMMAND
from lavad.core.lang.ranges import Ranges
from lavad.processes.lsb_events import Log
from lavad.store.read import Reader
from tests.support.worlds.query_cluster import QueryCluster, at
from tests.support.worlds.query_store import stored

MANY = 60
BOUND = 64 << 20
"""Bytes: that of texts, as they are read, as Python has them and as they are shown, and of the lines that are not yet written."""


def jobs_with_long_commands(c: QueryCluster) -> None:
    for job in range(1, MANY + 1):
        c.submit(job, name="long", command=f"{job:<{MAX_COMMAND}}")
        c.start(job)
        c.finish(job, "11:35:00")


def array_with_a_long_command(c: QueryCluster) -> None:
    c.submit(1, name="a", command=f"{1:<{MAX_COMMAND}}", indices=f"1-{2 * MANY}")
    c.feed(ev.ElementsKilled(at=at("11:35:00"), key=1, elements=Ranges.span(1, 2 * MANY), by="alice"))


@pytest.mark.parametrize(("grow", "lines"), [(jobs_with_long_commands, MANY), (array_with_a_long_command, 2 * MANY)])
def test_long_commands_of_many_jobs_are_never_in_memory_at_once(tmp_path: Path, grow: object, lines: int) -> None:
    c = QueryCluster()
    grow(c)  # type: ignore[operator]
    with stored(c, tmp_path):
        reader = Reader.open(f"sqlite:///{tmp_path}/lava.db")
        log = Log(tmp_path / "logdir", reader)
        tracemalloc.start()
        try:
            while log.advance():
                pass
            assert tracemalloc.get_traced_memory()[1] < BOUND
        finally:
            tracemalloc.stop()
            reader.close()
    with (tmp_path / "logdir" / "lsb.acct").open() as file:
        told = [line.count(" " * (MAX_COMMAND // 2)) for line in file]
    assert told == [1] * lines
