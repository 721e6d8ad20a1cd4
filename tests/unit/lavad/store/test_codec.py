"""Bytes of records, row ids, file locks and the naming of failures."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
import sqlalchemy.exc as exc
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.events import Configured, ElementsKilled, Event, HostUp
from lavad.core.job.job import Array, Attempt, Job, Part
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.site.conf import Conf
from lavad.store import codec, errors, schema
from lavad.store.connect import FileLock
from lavad.store.rows import killed_jobs
from lavad.store.statements import Statements


@given(job=st.integers(1, 2**31 - 1), index=st.integers(0, 2**31 - 1))
def test_row_ids_are_keys_turned_round(job: int, index: int) -> None:
    key = key_of(job, index)
    row = codec.row_id(key)
    assert codec.row_id(key_of(job)) <= row < codec.row_id(key_of(job + 1))
    assert 0 < row < 2**63


def test_records_come_back() -> None:
    part = Part(host="h", slots=2, gpus=("GPU-1",), reserved=(("mem", 1.5),))
    run = Attempt(number=1, uid="u", dispatched=2.0, parts=(part,))
    job = Job(key=7, spec=1, name="j", submitted=1.0, state=JobState.RUN, attempt=1, run=run)
    assert codec.decode_job(codec.encode(job)) == job
    array = Array(
        job=7,
        spec=1,
        name="a",
        spec_text="a[1-3]",
        submitted=1.0,
        indices=Ranges.span(1, 3),
        pending=EMPTY,
        held=Ranges.span(1, 3),
    )
    assert codec.decode_array(codec.encode(array)) == array


def test_an_event_with_a_field_that_is_not_known_yet_reads() -> None:
    later = codec.encode({"is": "HostUp", "at": 1.0, "host": "h", "reason": "new"})
    assert codec.decode_event(1, later) == HostUp(at=1.0, host="h")


def test_bytes_that_are_no_event_are_corruption() -> None:
    good, bad = codec.encode(HostUp(at=1.0, host="h")), codec.encode({"is": "Nonsense", "at": 1.0})
    with pytest.raises(errors.StoreCorrupt, match="event 7 does not read"):
        codec.decode_event(7, bad)
    with pytest.raises(errors.StoreCorrupt, match="event 7 does not read"):
        codec.decode_events([(6, good), (7, bad), (8, good)])


@pytest.mark.parametrize("others", [(), (Configured(at=2.0, conf=Conf()),)])
def test_many_events_read_as_each_of_them(others: tuple[Event, ...]) -> None:
    events = [HostUp(at=1.0, host="h"), *others, ElementsKilled(at=3.0, key=7, elements=Ranges.span(1, 3)), *others]
    rows = [(seq, codec.encode(event)) for seq, event in enumerate(events, 5)]
    assert codec.decode_events(rows) == [*enumerate(events, 5)]
    assert codec.decode_events([]) == []


def test_a_row_of_several_events_reads_as_each_of_them() -> None:
    events = [HostUp(at=1.0, host=f"h{number}") for number in range(5)]
    rows = [(4, codec.encode(events[0])), (7, codec.encode_events(events[1:4])), (8, codec.encode(events[4]))]
    assert codec.decode_events(rows) == [*enumerate(events, 4)]
    for damaged in (rows[1][1][:-6], codec.encode_events([{"is": "Nonsense", "at": 1.0}])):  # type: ignore[list-item]
        with pytest.raises(errors.StoreCorrupt, match="event 7 does not read"):
            codec.decode_events([rows[0], (7, damaged), rows[2]])


def test_killed_elements_get_records() -> None:
    array = Array(
        job=7, spec=3, name="a", spec_text="a[1-9]", submitted=1.0, indices=Ranges.span(1, 9), pending=EMPTY, held=EMPTY
    )
    killed = ElementsKilled(at=5.0, key=7, elements=Ranges.parse("2,4"), reason=TermReason.TERM_ADMIN)
    jobs = list(killed_jobs([HostUp(at=1.0, host="h"), killed], {7: array}))
    assert [(job.key, job.name, job.state, job.since) for job in jobs] == [
        (key_of(7, 2), "a[2]", JobState.EXIT, 5.0),
        (key_of(7, 4), "a[4]", JobState.EXIT, 5.0),
    ]
    assert jobs[0].outcome is not None
    assert jobs[0].outcome.reason is TermReason.TERM_ADMIN


def _sqlite(code: int, text: str = "bad") -> exc.DBAPIError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return exc.OperationalError("x", None, error)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, errors.StoreFull),
        (sqlite3.SQLITE_IOERR_WRITE, errors.StoreFull),
        (sqlite3.SQLITE_CORRUPT, errors.StoreCorrupt),
        (sqlite3.SQLITE_NOTADB, errors.StoreCorrupt),
        (sqlite3.SQLITE_BUSY, errors.StoreRefused),
        (sqlite3.SQLITE_CONSTRAINT, errors.StoreRefused),
    ],
)
def test_failures_of_sqlite(code: int, kind: type[errors.StoreError]) -> None:
    assert type(errors.refusal(_sqlite(code))) is kind


def test_a_failed_fsync_in_the_commit_leaves_the_outcome_unknown() -> None:
    assert type(errors.at_commit(_sqlite(sqlite3.SQLITE_IOERR_FSYNC))) is errors.OutcomeUnknown
    assert type(errors.at_commit(_sqlite(sqlite3.SQLITE_FULL))) is errors.StoreFull


@pytest.mark.parametrize(
    ("error", "first", "at_commit"),
    [
        (psycopg.errors.DiskFull("no space\nhint"), errors.StoreFull, errors.StoreFull),
        (psycopg.errors.UniqueViolation("twice"), errors.StoreRefused, errors.StoreRefused),
        (psycopg.errors.DataCorrupted("page"), errors.StoreCorrupt, errors.StoreCorrupt),
        (psycopg.errors.IdleInTransactionSessionTimeout("idle"), errors.StoreAway, errors.StoreAway),
        (psycopg.errors.AdminShutdown("bye"), errors.StoreAway, errors.OutcomeUnknown),
        (psycopg.OperationalError("server closed the connection"), errors.StoreAway, errors.OutcomeUnknown),
    ],
)
def test_failures_of_postgres(error: psycopg.Error, first: type[errors.StoreError], at_commit: type[errors.StoreError]) -> None:
    wrapped = exc.OperationalError("x", None, error)
    assert type(errors.refusal(wrapped)) is first
    assert type(errors.at_commit(wrapped)) is at_commit
    assert "\n" not in str(errors.refusal(wrapped))


@pytest.mark.parametrize("url", ["sqlite:////tmp/none", "postgresql+psycopg://h/d"])
def test_statements_take_rows_in_the_order_of_the_columns(url: str) -> None:
    statements = Statements(sa.create_engine(url).dialect)
    for write, columns in (
        (statements.event, schema.events.columns),
        (statements.job, schema.live_jobs.columns),
        (statements.finished, schema.jobs.columns),
        (statements.meta, schema.meta.columns),
    ):
        named = write.text.partition("(")[2].partition(")")[0].replace('"', "").split(", ")
        assert named == [column.name for column in columns]
        assert write.text.count("?") + write.text.count("$") == len(columns)
        assert write.many.count("$") == len(write.kinds) == (0 if url.startswith("sqlite") else len(columns))


def test_a_lock_file_names_its_holder(tmp_path: Path) -> None:
    path = f"{tmp_path}/lava.db"
    lock = FileLock(path)
    with pytest.raises(errors.StoreHeld, match=r"lava\.db is in use by lavad \(pid \d+ on "):
        FileLock(path)
    lock.release()
    lock.release()
    FileLock(path).release()
