"""Whose output is too much for a host, and what follows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.core.kept_output import (
    MB,
    MOST_RESERVE,
    OUTPUT_DISK,
    OUTPUT_LIMIT,
    Decision,
    Finished,
    Limits,
    Running,
    decide,
    is_tight,
    limits,
    sizes,
)
from config.model.site_params import SiteParams

PLENTY = 1 << 50


def names(decided: Decision) -> list[str]:
    return [file.name for file in decided.remove]


def test_what_the_site_says_in_mb_and_what_holds_where_it_says_nothing() -> None:
    def set_to(job: int, user: int, reserve: int) -> SiteParams:
        return SiteParams(lava_output_limit=job, lava_output_user_limit=user, lava_output_reserve=reserve)

    assert limits(set_to(10, 20, 30), 1000 * MB) == Limits(10 * MB, 20 * MB, 30 * MB)
    assert limits(SiteParams(), 1000 * MB) == Limits(0, 250 * MB, 50 * MB)
    assert limits(SiteParams(), PLENTY).reserve == MOST_RESERVE
    assert limits(set_to(0, 0, 0), 1000 * MB) == Limits()


def test_a_job_over_its_limit_ends_once() -> None:
    jobs = [Running("a", "ann", 11), Running("b", "ann", 10), Running("c", "bob", 12, ending=True)]
    assert decide(Limits(job=10), jobs, [], PLENTY) == Decision({"a": OUTPUT_LIMIT})
    assert decide(Limits(), jobs, [], PLENTY) == Decision()


def test_a_user_over_the_limit_loses_the_oldest_output_of_finished_jobs_and_nobody_else_does() -> None:
    files = [
        Finished("ann", "2", 4, 20.0),
        Finished("ann", "1", 4, 10.0),
        Finished("ann", "3", 4, 30.0),
        Finished("bob", "0", 4, 1.0),
    ]
    assert names(decide(Limits(user=12), [], files, PLENTY)) == []
    assert names(decide(Limits(user=11), [], files, PLENTY)) == ["1"]
    decided = decide(Limits(user=10), [Running("a", "ann", 5)], files, PLENTY)
    assert (names(decided), decided.end) == (["1", "2"], {})


def test_where_no_file_is_left_the_job_with_the_most_output_ends_and_the_next_waits_for_that() -> None:
    jobs = [Running("a", "ann", 5), Running("b", "ann", 9), Running("c", "bob", 10)]
    decided = decide(Limits(user=10), jobs, [Finished("ann", "1", 3, 1.0)], PLENTY)
    assert (names(decided), decided.end) == (["1"], {"b": OUTPUT_LIMIT})
    jobs[1] = Running("b", "ann", 9, ending=True)
    assert decide(Limits(user=10), jobs, [], PLENTY).end == {}


def test_a_disk_without_its_reserve_ends_the_largest_job_of_the_user_who_writes_the_most() -> None:
    jobs = [Running("a", "ann", 60), Running("b", "ann", 70), Running("c", "bob", 100)]
    assert decide(Limits(reserve=50), jobs, [], 50).end == {}
    assert decide(Limits(reserve=50), jobs, [], 49).end == {"b": OUTPUT_DISK}
    jobs[1] = Running("b", "ann", 70, ending=True)
    assert decide(Limits(reserve=50), jobs, [], 0).end == {}


def test_a_disk_that_others_have_filled_ends_no_job() -> None:
    jobs = [Running("a", "ann", 10), Running("b", "bob", 20)]
    few = [Finished("cid", "1", 20, 1.0)]
    assert decide(Limits(reserve=50), jobs, few, 0) == Decision()
    many = [*few, Finished("cid", "3", 20, 3.0), Finished("cid", "2", 20, 2.0), Finished("dot", "0", 5, 0.0)]
    decided = decide(Limits(reserve=50), jobs, many, 25)
    assert (names(decided), decided.end) == (["1", "2"], {})


_SIZES = st.integers(0, 100)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), _SIZES, st.booleans())),
    st.lists(st.tuples(st.sampled_from("ab"), _SIZES)),
    st.tuples(_SIZES, _SIZES, _SIZES),
    _SIZES,
)
def test_nothing_goes_without_need(
    jobs: list[tuple[str, int, bool]], left: list[tuple[str, int]], most: tuple[int, int, int], free: int
) -> None:
    """No job twice, one for a full disk at most, and no file of a user who is within the limit on a disk with its reserve."""
    running = [Running(str(number), user, size, ending) for number, (user, size, ending) in enumerate(jobs)]
    finished = [Finished(user, str(number), size, float(number)) for number, (user, size) in enumerate(left)]
    limit = Limits(*most)
    decided = decide(limit, running, finished, free)
    if not is_tight(limit, running, sizes(finished), free):
        assert decided == decide(limit, running, [], free)
    assert not {one.uid for one in running if one.ending} & decided.end.keys()
    assert list(decided.end.values()).count(OUTPUT_DISK) <= 1
    assert len(set(decided.remove)) == len(decided.remove)
    if free >= limit.reserve:
        for user in "ab":
            has = sum(one.size for one in running if one.user == user) + sum(one.size for one in finished if one.user == user)
            gone = sum(file.size for file in decided.remove if file.user == user)
            assert not gone or has > limit.user > 0
