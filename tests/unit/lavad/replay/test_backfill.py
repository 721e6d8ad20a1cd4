"""The backfill policies that ``lava whatif`` simulates, on a profile of free slots checked against a plain array of seconds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.replay import profile as profiles
from lavad.replay.backfill import Waiting, easy, promise
from lavad.replay.profile import Held, Profile
from tests.support.examples import examples

HORIZON = 60
WHOLE = 8

spans = st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, WHOLE))


def find_in(row: list[int], amount: int, duration: int, after: int) -> int | None:
    """By trying each second. Beyond the horizon all is as at its end."""
    for start in range(after, HORIZON + 1):
        if all(row[min(time, HORIZON)] >= amount for time in range(start, start + max(1, duration))):
            return start
    return None


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(st.integers(1, HORIZON), st.integers(1, WHOLE)), max_size=8),
    st.lists(spans, max_size=20),
    st.sampled_from((2, 4, 256)),
    st.booleans(),
)
def test_like_an_array_of_seconds(
    running: list[tuple[int, int]], wanted: list[tuple[int, int, int]], block: int, passes: bool
) -> None:
    """Each reservation begins at the first second at which the array has enough throughout, whatever time has passed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "BLOCK", block)
        held = [Held(until, key, amount) for key, (until, amount) in enumerate(running)]
        profile = Profile(0, WHOLE, held)
        row = [WHOLE + sum(one.amount for one in held if one.until <= time) for time in range(HORIZON + 1)]
        now = 0
        for start, duration, amount in wanted:
            now = max(now, start // 4) if passes else 0
            profile.forget(now)
            begin = max(start, now)
            found = find_in(row, amount, duration, begin)
            assert profile.reserve_earliest(amount, duration, begin) == found
            if found is not None:
                row = [free - amount * (found <= time < found + duration) for time, free in enumerate(row)]
                if found + duration > HORIZON:
                    return


def test_for_ever() -> None:
    """What nobody knows the end of holds its part for ever."""
    profile = Profile(5, 2, [Held(math.inf, 1, 4), Held(9, 2, 2), Held(9, 3, 1)])
    assert profile.reserve_earliest(6, 1) is None
    assert profile.reserve_earliest(5, math.inf) == 9
    assert profile.reserve_earliest(1, math.inf) is None
    assert profile.reserve_earliest(2, 4) == 5


@settings(max_examples=examples(200))
@given(
    st.lists(spans, max_size=20),
    st.integers(0, HORIZON),
    st.integers(0, HORIZON),
    st.integers(1, WHOLE),
    st.sampled_from((2, 256)),
)
def test_where_too_little_is_free_and_an_end(
    wanted: list[tuple[int, int, int]], after: int, before: int, amount: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "BLOCK", block)
        profile = Profile(0, WHOLE)
        row = [WHOLE] * (2 * HORIZON)
        for start, duration, size in wanted:
            found = profile.reserve_earliest(size, duration, start)
            assert found is not None
            for time in range(int(found), int(found) + duration):
                if time < len(row):
                    row[time] -= size
        below = next(((time, row[time]) for time in range(after, before) if row[time] < amount), None)
        assert profile.first_below(amount, after, before) == below
        profile.end(after)
        row[after:] = [0] * (len(row) - after)
        spans = "".join("x" if free >= amount else " " for free in row).split()
        assert profile.longest(amount) == max(map(len, spans), default=0)
        for _, duration, size in wanted:
            found = find_in(row, size, duration, 0)
            assert profile.reserve_earliest(size, duration) == found
            if found is not None:
                row = [free - size * (found <= time < found + duration) for time, free in enumerate(row)]


def test_promise_of_what_can_never_be() -> None:
    """More than there is: never, and nothing is held back for it."""
    assert promise(9, [Held(3, 1, 4)], 2) == (math.inf, 0)
    decision = easy([Waiting(1, 9, 5), Waiting(2, 2, math.inf)], [Held(3, 7, 4)], 0, 2)
    assert (decision.starts, decision.promises) == ([2], {})


def test_a_job_of_unknown_length_backfills_only_what_is_spare() -> None:
    """Without a run limit a job could hold its slots past any promise."""
    running = [Held(10, 1, 3)]
    assert easy([Waiting(2, 4, 5), Waiting(3, 2, math.inf)], running, 0, 2).starts == []
    assert easy([Waiting(2, 4, 5), Waiting(3, 1, math.inf)], running, 0, 2).starts == [3]
    assert easy([Waiting(2, 4, 5), Waiting(3, 2, 10)], running, 0, 2).starts == [3]


queues = st.lists(st.tuples(st.integers(1, WHOLE), st.integers(0, 12)), max_size=15)
uses = st.lists(st.tuples(st.integers(-3, 12), st.integers(1, 4)), max_size=2)


@settings(max_examples=examples(300))
@given(queues, uses)
def test_starts_leave_the_promise_where_it_was(queue: list[tuple[int, int]], use: list[tuple[int, int]]) -> None:
    """Asked again with the new jobs running, EASY promises the head the same time and starts nobody else."""
    line = [Waiting(at, amount, max(1, duration)) for at, (amount, duration) in enumerate(queue)]
    running = sorted(Held(max(1, until), 100 + at, amount) for at, (until, amount) in enumerate(use))
    free = WHOLE - sum(held.amount for held in running)
    first = easy(line, running, 0, free)
    begun = [Held(job.duration, job.key, job.amount) for job in line if job.key in first.starts]
    rest = [job for job in line if job.key not in first.starts]
    again = easy(rest, sorted([*running, *begun]), 0, free - sum(held.amount for held in begun))
    assert (again.starts, again.promises) == ([], first.promises)
