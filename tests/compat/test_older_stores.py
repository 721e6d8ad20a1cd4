"""A store of each older schema, with jobs, is upgraded: it is sound, shows what it showed, and lavad runs jobs on it.

How the stores were made: ``older_stores/README.md``.
"""

from __future__ import annotations

import gzip
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cli.client.options import read_letters, table_of
from lavad.core.lang.asks import Caller, Query
from lavad.core.plan.volatile import Soft
from lavad.database.main import main
from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.store.backup import copy_rows
from lavad.store.connect import make_engine
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.schema import HEAD
from lavad.store.upgrade import make_tables
from lavad.store.writer import Store
from tests.support.live.cluster import Cluster
from tests.support.stores.postgres import new_database

STORES = Path(__file__).parent / "older_stores"
VERSIONS = sorted(path.name.removesuffix(".sql.gz") for path in STORES.glob("*.sql.gz"))
NEVER_WRITTEN = {"0003"}
"""No lava left a store at these versions: their migration came in one commit with the next."""
LIVE_FIGURES = re.compile(r"\n ?MEMORY USAGE:\n ?MAX MEM: .*\n")
"""What hosts report and the store does not keep."""
SUMMED = re.compile(
    r"^ (?:Total|Average|Maximum|Minimum) (?:wait time|turnaround time|Run time|hog factor|expansion factor).*\n", re.MULTILINE
)
"""Sums of times in bacct: older versions made them of parts of seconds, not of the seconds that its lines show."""
WRAPPED = re.compile(r"\n {21}")
REWORDED = {"Signal <REQUEUE> requested": "Signal <REQUEUE_PEND> requested"}
"""What older versions called otherwise in ``bhist -l``."""


def unpack(version: str, path: Path) -> str:
    """The store of a version as a SQLite file; its URL."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(gzip.decompress((STORES / f"{version}.sql.gz").read_bytes()).decode())
    return f"sqlite:///{path}"


def upgrade(version: str, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``lava db upgrade``, after which ``lava db check`` finds nothing wrong."""
    assert main(["check", "--database", url]) == 1
    assert f"is at version {version}, this lava checks {HEAD}" in capsys.readouterr().err
    assert main(["upgrade", "--database", url]) == 0
    assert capsys.readouterr().out == f"version {version} is {HEAD} now\n"
    status = main(["check", "--database", url])
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert f"version {HEAD};" in shown


@pytest.fixture
def utc() -> Iterator[None]:
    former = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if former is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = former
    time.tzset()


def listings(version: str) -> Iterator[tuple[float, list[str], str]]:
    """(time, command with its options, what it printed) of the older lava."""
    for part in (STORES / f"{version}.txt").read_text().split("## ")[1:]:
        head, _, shown = part.partition("\n")
        now, *words = head.split(" ", 4 if " -o " in head else -1)
        yield float(now), words, shown


def ask(url: str, now: float, command: str, *words: str) -> str:
    """What this lava prints."""
    options, rest = read_letters(table_of(command), list(words))
    store = Store.open(url, create=False)
    reader = Reader.open(url)
    try:
        view = View(load(store), Soft(), lambda: reader, master="host1")
        query = Query(command=command, options=options, words=rest)
        return "".join(text for kind, text in render(view, query, Caller("root", 0, "host1"), now) if kind == "out")
    finally:
        reader.close()
        store.close()


def plain(shown: str) -> list[str]:
    """Lines without what is not in a store, wrapped ones whole."""
    text = WRAPPED.sub("", SUMMED.sub("", LIVE_FIGURES.sub("", shown)))
    for former, now in REWORDED.items():
        text = text.replace(former, now)
    return [line.rstrip() for line in text.rstrip().splitlines()]


def check_listings(version: str, url: str) -> None:
    """This lava shows what the older one showed; ``bhist -l`` may tell more."""
    for now, (command, *words), shown in listings(version):
        former, found = plain(shown), plain(ask(url, now, command, *words))
        if "-l" in words:
            lines = iter(found)
            assert [line for line in former if line not in lines] == [], (command, words)
        else:
            assert found == former, (command, words)


def test_there_is_a_store_of_every_version_before() -> None:
    versions = {f"{number:04}" for number in range(1, int(HEAD))}
    assert set(VERSIONS) | NEVER_WRITTEN == versions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.usefixtures("utc")
def test_it_is_sound_and_shows_what_it_showed(version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = unpack(version, tmp_path / "lavad.sqlite")
    upgrade(version, url, capsys)
    check_listings(version, url)


@pytest.mark.usefixtures("utc")
def test_the_newest_of_before_is_upgraded_in_postgresql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    version = VERSIONS[-1]
    file, url = unpack(version, tmp_path / "lavad.sqlite"), new_database()
    source, target = make_engine(file), make_engine(url)
    with source.connect() as rows, target.connect() as connection, connection.begin():
        make_tables(connection, version)
        copy_rows(rows, connection)
    source.dispose()
    target.dispose()
    upgrade(version, url, capsys)
    check_listings(version, url)


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[len(VERSIONS) // 2], *VERSIONS[-2:]])
def test_lavad_starts_on_it_and_runs_jobs(version: str, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("its jobs are of root, and run again")
    folder = tmp_path / "cluster"
    folder.mkdir()
    unpack(version, folder / "lavad.sqlite")
    tmp_path.chmod(0o755)
    with Cluster(folder, hosts=2, slots=6) as cluster:
        new = cluster.submit("-m host1 -o /dev/null true")
        cluster.wait_for(new, "DONE")
        held = cluster.run("bjobs -noheader -o jobid -J renamed").stdout.strip()
        cluster.run(f"bmod -m host1 {held}")
        cluster.run(f"bresume {held}")
        cluster.wait_for(held, "DONE")
        checked = cluster.lava("db", "check", "--dir", str(folder))
        assert checked.returncode == 0, checked.stdout
