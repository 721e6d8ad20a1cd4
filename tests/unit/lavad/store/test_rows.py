"""Which rows of former jobs give way to a batch."""

from __future__ import annotations

from sqlalchemy.dialects import sqlite

from lavad.core.events import JobSubmitted
from lavad.store.batch import Batch
from lavad.store.rows import Rows
from lavad.store.statements import Statements

TO = Statements(sqlite.dialect())


def forgotten(top: int, *jobs: int) -> tuple[list[int], int]:
    """The jobs whose former rows are deleted where these are submitted, and the highest id that may have rows then."""
    events = [JobSubmitted(at=1.0, key=job, spec=1, name="n") for job in jobs]
    rows = Rows(Batch(first=1, events=events), TO, lambda _: ("u", "q", "p"), top)
    found = [key for write, values in rows.writes() if write is TO.text_gone for (key,) in values]
    return found, rows.top_job


def test_an_id_up_to_the_highest_may_have_rows_also_when_ids_have_wrapped_around() -> None:
    assert forgotten(8, 9, 10) == ([], 10)
    assert forgotten(10, 1) == ([1], 10)
    assert forgotten(10, 2, 3) == ([2, 3], 10)
    assert forgotten(9, 10, 1) == ([1], 10)
