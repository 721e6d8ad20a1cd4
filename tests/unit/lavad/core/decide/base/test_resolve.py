"""What a dependency condition names: which jobs, whose, and what is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.base.resolve import NeedsLookup, StoredJobs, resolve
from lavad.core.job.depend import Ended, Jobs
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.bench import ADMIN, ALICE, BOB, Bench

DONE = Ended(done=Ranges.span(1, 1))
STORED = StoredJobs(
    jobs={90: DONE, 91: replace(DONE, indices=Ranges.span(1, 3)), 92: None, 93: DONE},
    names={"old": (90, 93), "gone": ()},
)
UNKNOWN = "No matching job found"
SIZES = "Dependent arrays do not have the same size"


@pytest.fixture
def site(bench: Bench) -> Bench:
    """1: a job of alice, 2: an array of hers, 3: a job of bob of the same name as hers, 4: one more of alice."""
    bench.submit("prep")
    bench.submit("steps", array="1-3")
    bench.submit("prep", user="bob")
    bench.submit("prep")
    return bench


def named(bench: Bench, text: str, caller: Caller = ALICE, array: str = "", known: StoredJobs = STORED) -> tuple[Jobs, ...]:
    """The jobs of each question."""
    return resolve(bench.cluster, text, caller, False, known, Ranges.parse(array) if array else None)[0].ids


@pytest.mark.parametrize(
    ("text", "array", "why"),
    [
        ("done(1[1])", "", f"1[1]: {UNKNOWN}"),
        ("done(2[4])", "", f"2[4]: {UNKNOWN}"),
        ("done(2[2-4])", "", f"2[2-4]: {UNKNOWN}"),
        ("done(steps[4])", "", f"steps[4]: {UNKNOWN}"),
        ("done(90[1])", "", f"90[1]: {UNKNOWN}"),
        ("done(91[4])", "", f"91[4]: {UNKNOWN}"),
        ("done(92)", "", f"92: {UNKNOWN}"),
        ("done(gone)", "", f"gone: {UNKNOWN}"),
        ("done(2[*])", "", "2[*]: The job is no array, so that [*] has no meaning"),
        ("done(2[*])", "1-4", SIZES),
        ("done(2[*])", "2-4", SIZES),
        ("done(1[*])", "1-3", SIZES),
        ("done(90[*])", "1-3", SIZES),
        ("done(91[*])", "1-2", SIZES),
        ("done(1", "", "Dependency condition syntax error"),
    ],
)
def test_what_is_refused(site: Bench, text: str, array: str, why: str) -> None:
    with pytest.raises(Refused) as refusal:
        named(site, text, array=array)
    assert refusal.value.text.endswith(why)


@pytest.mark.parametrize(
    ("text", "array", "ids"),
    [
        ("done(1) && ended(2)", "", ((1,), (2,))),
        ("done(2[3])", "", ((2,),)),
        ("done(2[*])", "1-3", ((2,),)),
        ("done(91[3]) || done(91[*])", "1-3", ((91,), (91,))),
        ("done(old)", "", ((90, 93),)),
        ('done("st*")', "", ((2,),)),
    ],
)
def test_what_is_named(site: Bench, text: str, array: str, ids: tuple[Jobs, ...]) -> None:
    assert named(site, text, array=array) == ids


@pytest.mark.parametrize(("caller", "ids"), [(ALICE, (1, 4)), (BOB, (3,)), (ADMIN, (1, 3, 4))])
def test_a_name_is_of_the_caller_s_jobs_and_for_an_administrator_of_all(site: Bench, caller: Caller, ids: Jobs) -> None:
    assert named(site, "done(prep)", caller) == (ids,)


@pytest.mark.parametrize(
    ("name", "ended", "newest"), [("prep", (), 4), ("prep", (2,), 4), ("prep", (2, 90), 90), ("old", (90, 93), 93)]
)
def test_with_job_dep_last_sub_a_name_is_the_job_submitted_last(
    site: Bench, name: str, ended: tuple[int, ...], newest: int
) -> None:
    """Also where that one has ended already, and older ones have not."""
    site.configure(params=replace(site.cluster.conf.params, job_dep_last_sub=True))
    with pytest.raises(NeedsLookup) as missing:
        named(site, f"done({name})", known=StoredJobs())
    assert missing.value.names == [name]
    known = StoredJobs(jobs=STORED.jobs, names={name: ended})
    assert named(site, f"done({name})", known=known) == ((newest,),)


def test_an_array_that_has_ended_and_is_still_named_needs_no_look_up(site: Bench) -> None:
    """Its elements, and what they were, are those that it was submitted with."""
    site.apply(*_waiting_for(site, "ended(2)"))
    site.apply(ev.ElementsKilled(at=site.now, key=2, elements=Ranges.span(1, 3)))
    assert 2 not in site.cluster.arrays.rows
    assert named(site, "done(2[3])", known=StoredJobs()) == ((2,),)
    with pytest.raises(Refused, match=rf"^2\[4\]: {UNKNOWN}$"):
        named(site, "done(2[4])", known=StoredJobs())
    with pytest.raises(Refused, match=f"^{SIZES}$"):
        named(site, "done(2[*])", array="1-2", known=StoredJobs())


def _waiting_for(bench: Bench, text: str) -> list[ev.Event]:
    found = resolve(bench.cluster, text, ALICE, False, STORED, None)
    key, spec = bench.cluster.next_job, bench.spec()
    return [ev.JobSubmitted(at=bench.now, key=key, spec=spec, name="waits", depend=found.depend, ended=found.ended)]
