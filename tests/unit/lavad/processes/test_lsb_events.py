"""The process that writes lsb.events and lsb.acct: what it writes of long commands, and the memory that this takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOSPC
from pathlib import Path

import msgspec
import pytest

from config.model.params import Params
from lavad.core import events as ev
from lavad.core.lang.bounds import MAX_COMMAND
from lavad.core.lang.ranges import Ranges
from lavad.lsb import position
from lavad.lsb.write import MOST_TEXT
from lavad.processes.lsb_events import Log, Replaced
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
        told = [line.count(" " * (MOST_TEXT // 2)) for line in file]
    assert told == [1] * lines


class Killed(BaseException):
    """In the place of SIGKILL."""


class DiesAsFilesMove(Log):
    """Is killed once a file was moved away."""

    def _rotated(self) -> bool:
        self.params = msgspec.structs.replace(self.params, max_job_num=2)
        super()._rotated()
        raise Killed


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Of a store with four jobs that have ended."""
    c = QueryCluster()
    for job in range(1, 5):
        c.submit(job)
        c.start(job)
        c.finish(job, "11:35:00")
    with stored(c, tmp_path):
        found = Reader.open(f"sqlite:///{tmp_path}/lava.db")
        yield found
        found.close()


def told_of(folder: Path, name: str, kind: str) -> list[str]:
    """The jobs of all lines of a kind, in the file and in those that were moved away."""
    lines = [line.split() for path in folder.glob(f"{name}*") for line in path.read_text().splitlines()]
    return sorted(words[3] for words in lines if words[0] == f'"{kind}"')


def check_each_line_is_there_once(folder: Path) -> None:
    assert told_of(folder, "lsb.events", "JOB_NEW") == ["1", "2", "3", "4"]
    assert told_of(folder, "lsb.acct", "JOB_FINISH") == ["1", "2", "3", "4"]


def write_all(log: Log) -> None:
    while log.advance():
        pass


def test_who_is_killed_as_files_move_away_has_written_each_line_once(tmp_path: Path, reader: Reader) -> None:
    folder = tmp_path / "logdir"
    dies = DiesAsFilesMove(folder, reader)
    with pytest.raises(Killed):
        dies.advance()
    assert (folder / "lsb.events.1").exists()
    write_all(Log(folder, reader))
    check_each_line_is_there_once(folder)


def test_the_one_that_was_started_last_writes(tmp_path: Path, reader: Reader) -> None:
    """A master that has hung beside another one goes on with an old position."""
    folder = tmp_path / "logdir"
    hung, other = Log(folder, reader), Log(folder, reader)
    with pytest.raises(Replaced):
        hung.advance()
    write_all(other)
    with pytest.raises(Replaced):
        hung.advance()
    check_each_line_is_there_once(folder)


def test_a_position_that_cannot_be_read_leaves_the_files_as_they_are(tmp_path: Path, reader: Reader) -> None:
    """They were begun anew, without the jobs that the store has no more."""
    folder = tmp_path / "logdir"
    write_all(Log(folder, reader))
    written = {path: path.read_text() for path in folder.glob("lsb.*")}
    kept = (folder / position.NAME).rename(tmp_path / "kept")
    (folder / position.NAME).symlink_to(position.NAME)  # ELOOP, for root too
    log = Log(folder, reader)
    with pytest.raises(OSError, match="symbolic links"):
        log.advance()
    assert {path: path.read_text() for path in written} == written
    kept.rename(folder / position.NAME)
    write_all(log)
    check_each_line_is_there_once(folder)


@pytest.mark.parametrize("damaged", ["", '{"seq": 1', "7", '{"seq": "x"}', "\0" * 40])
def test_a_position_that_is_damaged_is_not_taken_for_none(tmp_path: Path, reader: Reader, damaged: str) -> None:
    folder = tmp_path / "logdir"
    write_all(Log(folder, reader))
    written = {path: path.read_text() for path in folder.glob("lsb.*")}
    (folder / position.NAME).write_text(damaged)
    log = Log(folder, reader)
    with pytest.raises(OSError, match=r"its \.lava\.position is damaged"):
        log.advance()
    assert {path: path.read_text() for path in written} == written
    (folder / position.NAME).unlink()
    write_all(log)
    check_each_line_is_there_once(folder)


class HasNoRoom(Log):
    """The disk is full in the middle of a line, and has room again later."""

    full = True

    def _append(self, lines: dict[str, list[str]]) -> None:
        if self.full:
            with self.paths["lsb.events"].open("a") as file:
                file.write('"JOB_NEW" "10.1" 1')
            raise OSError(ENOSPC, "No space left on device")
        super()._append(lines)


def test_what_there_was_no_room_for_is_written_later(tmp_path: Path, reader: Reader) -> None:
    folder = tmp_path / "logdir"
    log = HasNoRoom(folder, reader)
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            log.advance()
    log.full = False
    write_all(log)
    check_each_line_is_there_once(folder)


def test_folder_that_cannot_be_made_may_come_later_and_another_writer_meanwhile(tmp_path: Path, reader: Reader) -> None:
    folder = tmp_path / "shared" / "logdir"
    folder.parent.touch()
    first, second = Log(folder, reader), Log(folder, reader)
    for log in (first, second):
        with pytest.raises(OSError, match=r"File exists|Not a directory"):
            log.advance()
    folder.parent.unlink()
    write_all(second)
    with pytest.raises(Replaced):
        first.advance()
    check_each_line_is_there_once(folder)


HIDDEN = [("N", 0o755), ("Y", 0o700), ("G", 0o700)]


@contextmanager
def hiding(folder: Path, access: str) -> Iterator[Reader]:
    """The reader of a store with a job, whose site says this."""
    c = QueryCluster()
    params = msgspec.structs.replace(c.cluster.conf.params, secure_infodir_user_access=access)
    c.feed(ev.Configured(at=at("11:00:00"), conf=msgspec.structs.replace(c.cluster.conf, params=params)))
    c.submit(1)
    (folder / "logdir").mkdir(mode=0o755)
    with stored(c, folder):
        found = Reader.open(f"sqlite:///{folder}/lava.db")
        yield found
        found.close()


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("access", "mode"), HIDDEN)
def test_where_bhist_hides_jobs_nobody_else_reads_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: str, mode: int, is_known: bool
) -> None:
    """Whether that is known at the beginning, or hidden later."""
    with hiding(tmp_path, access) as reader:
        if not is_known:
            monkeypatch.setattr(reader, "params", Params)
        log = Log(tmp_path / "logdir", reader)
        assert log.folder.stat().st_mode & 0o777 == (mode if is_known else 0o755)
        write_all(log)
        assert log.folder.stat().st_mode & 0o777 == mode
        assert told_of(log.folder, "lsb.events", "JOB_NEW") == ["1"]


def test_nothing_is_written_where_others_would_read_what_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError

    with hiding(tmp_path, "Y") as reader:
        log = Log(tmp_path / "logdir", reader)
        log.folder.chmod(0o755)
        monkeypatch.setattr(Path, "chmod", denied)
        with pytest.raises(PermissionError, match="SECURE_INFODIR_USER_ACCESS forbids"):
            write_all(log)
        assert told_of(log.folder, "lsb.events", "JOB_NEW") == []
