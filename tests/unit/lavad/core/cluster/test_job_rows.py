"""A job that was only submitted takes little memory, and is a whole record whenever it is looked at."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.cluster.job_rows import SIZE, JobRows, place_of_submitted
from lavad.core.cluster.versioned_table import submission_order
from lavad.core.job.job import Job
from lavad.core.lang.ids import index_of, job_of, key_of
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


def _job(key: int, **fields: Any) -> Job:
    return Job(key, key % 3 + 1, f"n{key % 5}", float(key), since=float(key), **fields)


@pytest.mark.parametrize("seed", range(5))
def test_jobs_in_columns_are_as_those_in_a_dict_in_the_order_of_their_ids(seed: int) -> None:
    chance = random.Random(seed)
    rows, known = JobRows(), dict[int, Job]()
    for key in range(1, 3 * SIZE + SIZE // 8):
        rows[key] = known[key] = _job(key)
        if chance.random() < 0.1:
            element = key_of(chance.randint(1, key), 1 + chance.randint(0, 3))
            rows[element] = known[element] = _job(element, attempt=chance.randint(0, 1))
    for _ in range(4 * SIZE):
        key = chance.choice([*known, chance.randint(1, 4 * SIZE)])
        what = chance.randint(0, 5)
        if what < 4:
            assert rows.pop(key, None) == known.pop(key, None)
        else:
            rows[key] = known[key] = _job(key, attempt=what - 4)
        assert rows.get(key) == known.get(key)
        assert (key in rows, len(rows)) == (key in known, len(known))
    assert [*rows.items()] == sorted(known.items(), key=lambda row: (job_of(row[0]), index_of(row[0])))
    for key in known:
        assert rows[key] == known[key]
        del rows[key]
    assert not [*rows]
    with pytest.raises(KeyError):
        del rows[1]


def test_when_a_job_was_submitted_of_which_no_more_is_known() -> None:
    """Wherever it stands; of what has started, elements and arrays it is not told."""
    rows = JobRows()
    for key in range(1, 2 * SIZE):
        rows[key] = _job(key)
    rows[5] = _job(5, attempt=1)
    rows[key_of(3, 2)] = _job(key_of(3, 2))
    for key, job in rows.items():
        touched = key == 5 or index_of(key)
        assert rows.submitted(key) == (None if touched else job.submitted)
        assert place_of_submitted(rows, key) == (None if touched else submission_order(job, key))
    assert rows.submitted(2 * SIZE) is None
    assert rows.submitted(9 * SIZE) is None


def test_twenty_thousand_jobs_take_less_than_forty_bytes_each_and_nothing_once_they_are_gone() -> None:
    tracemalloc.start()
    rows = JobRows()
    for key in range(1, 20_001):
        rows[key] = Job(key, 1, "job", key / 8, since=key / 8)
    size = tracemalloc.get_traced_memory()[0]
    assert size < 40 * 20_000
    for key in range(1, 20_001):
        if key % SIZE:
            del rows[key]
    # what is left of each lot stands alone, not in columns for all of them
    assert tracemalloc.get_traced_memory()[0] < 2 * size // SIZE + 40_000
    tracemalloc.stop()
    assert len(rows) == 20_000 // SIZE
