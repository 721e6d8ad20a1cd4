"""The lines of bjobs are the same whether jobs that were only submitted are read from columns or as records."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.cluster.job_rows import SIZE
from lavad.core.lang.ids import key_of
from lavad.queries.facts.jobset import MANY
from lavad.queries.jobs.bjobs_rows import cpu_text
from tests.support.worlds.query_cluster import ADMIN, ALICE, BOB, QueryCluster

ESCAPE = "\x1b[2Jnight"
JOBS = MANY + SIZE + 50
"""Enough for columns to be looked at; ids of two to four digits are among them."""


def _cluster(name: str) -> QueryCluster:
    """Jobs of one user with ``name`` for a while, then of two users and queues with names of their own, over some minutes."""
    c = QueryCluster()
    for job in range(1, JOBS):
        if job < 3 * SIZE:
            c.submit(job, f"11:{35 + job // 400}:00", name)
        else:
            user, queue = (ALICE.user, "normal") if job % 3 else (BOB.user, "night")
            c.submit(job, "11:39:00", f"{name}{job % 5}", held=job % 100 == 0, user=user, queue=queue)
    for job in (20, 3 * SIZE + 7):
        c.cluster.jobs.drop(job)
    c.cluster.forget_changes()
    return c


@pytest.mark.parametrize("name", ["n", "a name that is cut off", ESCAPE, "größer"])
@pytest.mark.parametrize(
    "options", [{"u": "all"}, {"u": BOB.user}, {"u": "all", "q": "night", "noheader": True}, {"u": "all", "p": True}]
)
def test_lines_of_jobs_in_columns(name: str, options: dict[str, object]) -> None:
    c = _cluster(name)
    from_columns = c.ask("bjobs", caller=ADMIN, **options)
    c.cluster.jobs.rows = dict(c.cluster.jobs.rows)
    assert from_columns == c.ask("bjobs", caller=ADMIN, **options)
    assert from_columns[0].count("\n") > SIZE / 4
    assert "\x1b" not in from_columns[0]


@pytest.mark.parametrize("name", ["n", "a name that is cut off", ESCAPE, "größer"])
def test_lines_of_elements_without_records(name: str) -> None:
    c = QueryCluster()
    c.submit(7, "11:35:00", name, indices="1-1200:3")
    c.submit(8, "11:36:00", name)
    c.submit(9, "11:37:00", name, indices="5-9", held=True, user=BOB.user, queue="night")
    c.start(key_of(7, 4))
    c.feed(ev.JobHeld(at=c.now, key=key_of(7, 10), by=ALICE.user))
    lines = c.ask("bjobs", caller=ADMIN, u="all")
    # a pattern is looked at for each element by itself
    assert lines == c.ask("bjobs", caller=ADMIN, u="all", J="*")
    assert lines[0].count("\n") == 1 + 400 + 1 + 5
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "000:00:00.00"),
        (0.014, "000:00:00.01"),
        (59.996, "000:01:00.00"),
        (3599.999, "001:00:00.00"),
        (3_600_000.5, "1000:00:00.50"),
    ],
)
def test_cpu_time_of_bjobs_W_is_rounded_as_a_whole(seconds: float, shown: str) -> None:
    assert cpu_text(seconds) == shown
