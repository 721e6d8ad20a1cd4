"""A job that was only submitted takes little memory, and is a whole record whenever it is looked at."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import Job
from tests.support.worlds.world import World


def test_a_job_that_was_only_submitted_is_small_and_whole_again_whenever_it_is_looked_at() -> None:
    world = World()
    plain, held, moved = world.submit(), world.submit(held=True), world.submit(name="other")
    rows = world.cluster.jobs.rows
    before = {key: rows[key] for key in rows}
    assert rows[plain] is not rows[plain], "it is made each time"
    assert rows[held] is rows[held]
    assert rows.get(plain) == rows[plain] == Job(plain, 1, "job", world.now, since=world.now)
    assert rows.get(99) is None
    assert dict(rows) == dict(rows.items()) == before == rows
    assert [*rows.values()] == [*before.values()]
    assert (len(rows), plain in rows, 99 in rows) == (3, True, False)
    world.apply(ev.JobMoved(at=world.now, key=moved, position=-1.0, by="alice"))
    assert rows[moved] is rows[moved]
    world.apply(ev.JobReleased(at=world.now, key=held, by="alice"))
    assert rows[held].stopper == before[held].stopper
    assert [*rows] == [plain, held, moved]
    world.cluster.undo_changes()
    assert not rows
    with pytest.raises(KeyError):
        rows[plain]
