"""Queries for many numbers: few parameters, and by the index, on both databases."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.states import JobState
from lavad.store import schema
from lavad.store.asked import Find
from lavad.store.connect import among
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit, store, store_url  # noqa: F401

HIGH = 2_000_000_000
"""A job id whose key needs all bits of the column."""
MANY = [*range(1, 301), HIGH]


def test_a_query_for_many_jobs_has_few_parameters(store: Store, store_url: str) -> None:  # noqa: F811
    """What makes and reads a parameter for each takes longer than the database for the rows."""
    submitted = [ev.JobSubmitted(at=2.0, key=job, spec=1, name=f"job{job}") for job in MANY]
    finished = [ev.JobFinished(at=3.0, key=job, state=JobState.DONE) for job in MANY]
    texts = [(job, JobText(command=f"echo {job}")) for job in MANY]
    spec = ev.SpecAdded(at=1.0, spec=1, value=Spec(user="ann", queue="normal"))
    commit(store, Cluster(), [spec, *submitted, *finished], texts=texts)
    reader = Reader.open(store_url)
    asked: list[int] = []

    @sa.event.listens_for(reader.engine, "before_cursor_execute")
    def _(_link: object, _cursor: object, _text: str, parameters: dict[str, object], _context: object, _many: bool) -> None:
        asked.append(len(parameters))

    wanted = MANY[::2]
    assert [job.key for job in reader.finished_jobs(Find(keys=tuple(wanted)))] == wanted
    assert list(reader.texts(wanted)) == list(reader.text_sizes(wanted)) == wanted
    assert list(reader.events_of_many(wanted)) == wanted
    assert reader.specs([]) == {}
    reader.close()
    assert max(asked) < 10


@pytest.mark.parametrize(
    ("column", "search"),
    [
        (schema.jobs.c.id, {"sqlite": "SEARCH jobs USING INTEGER PRIMARY KEY", "postgresql": "jobs_pkey"}),
        (schema.events.c.job, {"sqlite": "SEARCH events USING COVERING INDEX events_job", "postgresql": "events_job"}),
    ],
)
def test_the_rows_are_found_by_the_index(store: Store, column: sa.Column[int], search: dict[str, str]) -> None:  # noqa: F811
    with store.engine.connect() as connection:
        dialect = connection.dialect.name
        query = sa.select(column).where(among(column, [1, 2, 3]))
        text = query.compile(connection, compile_kwargs={"literal_binds": True}).string
        explain = "EXPLAIN QUERY PLAN" if dialect == "sqlite" else "EXPLAIN"
        plan = "\n".join(str(row) for row in connection.exec_driver_sql(f"{explain} {text}"))
    assert search[dialect] in plan
    assert " = ANY " in plan or dialect == "sqlite"
