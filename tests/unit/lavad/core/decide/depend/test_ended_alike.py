"""Conditions on many jobs that are over, read by how they ended: the same as if each were read alone."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.resolve import StoredJobs
from lavad.core.decide.depend.depend import ConditionQueue, judge
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.depend import BLOCKED, MET, NEVER, Ended, EndedAlike
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Judge, Modify, OptionValue, Refused, Submit
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.bench import ALICE, LOCAL, Bench

LOCAL_TIME = (1, 43_200)
ONE = Ranges.span(1, 1)
DONE, FAILED, POST = Ended(done=ONE), Ended(exited=((3, ONE),)), Ended(done=ONE, post_failed=ONE)
ARRAY = Ended(done=Ranges.span(1, 4), exited=((1, Ranges.span(5, 5)),), indices=Ranges.span(1, 5))
FIRST, LAST = 101, 130
JOBS = Ranges.span(FIRST, LAST)
STORES: dict[str, dict[int, Ended]] = {
    "all done": dict.fromkeys(JOBS, DONE),
    "some failed": {job: FAILED if job % 7 == 0 else DONE for job in JOBS},
    "all failed": dict.fromkeys(JOBS, FAILED),
    "a post-execution failed": {job: POST if job == LAST else DONE for job in JOBS},
    "with an array": {job: ARRAY if job == FIRST else DONE for job in JOBS},
}
CONDITIONS = (
    'done("a*")', 'ended("a*")', 'exit("a*")', 'exit("a*", 3)', 'exit("a*", > 3)', '!done("a*")', 'post_done("a*")',
    'post_err("a*")', 'started("a*")', '"a*"', 'done("a*") || ended("a*")', 'done("a*") && ended("a*")',
    'ended(1) && done("a*")', 'done(1) || ended("a*")', 'done("a*[1]")', 'numdone("a*", > 2)', 'external("a*", "x")',
)  # fmt: skip


def stored(ended: dict[int, Ended], alike: bool) -> StoredJobs:
    """What is read of them: by how they ended, or each alone."""
    if not alike:
        return StoredJobs(names={"a*": JOBS}, jobs=dict(ended))
    groups: EndedAlike = tuple(
        (Ranges.from_indices(job for job, one in ended.items() if one == how), how) for how in (DONE, FAILED, POST)
    )
    return StoredJobs(
        names={"a*": JOBS}, jobs={FIRST: ARRAY} if ended[FIRST] is ARRAY else {}, alike={"a*": tuple(g for g in groups if g[0])}
    )


def outcome(ended: dict[int, Ended], alike: bool, options: dict[str, OptionValue]) -> tuple[object, ...]:
    """Why it is refused, or what the job waits for and how that stands; and what bwait says."""
    bench = Bench()
    conditions = ConditionQueue(bench.cluster.conditions)
    bench.submit()
    bench.apply(ev.JobHeld(at=bench.now, key=1))
    known, ask = stored(ended, alike), Submit(command="x", options=options)
    try:
        decided = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, known=known))
    except Refused as refused:
        return (refused.text,)
    waited = (
        judge(bench.cluster, Judge(condition=str(options["w"])), ALICE, LOCAL_TIME, known).answer["stands"]
        if "J" not in options
        else 0
    )
    bench.apply(*decided.events)
    check_invariants(bench.cluster)
    while events := conditions.settle(bench.cluster, bench.now, LOCAL_TIME, 100):
        bench.apply(*events)
    key = int(decided.answer["job"])
    job, array = bench.cluster.jobs.rows.get(key), bench.cluster.arrays.rows.get(key)
    assert job is not None or array is not None
    return (job.depend, job.blocked, waited) if job is not None else (array.depend, array.waiting, array.never) if array else ()


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("text", CONDITIONS)
@pytest.mark.parametrize("name", STORES)
def test_it_stands_as_if_each_were_read_alone(name: str, text: str, array: bool) -> None:
    options: dict[str, OptionValue] = {"w": text, **({"J": "b[1-5]"} if array else {})}
    assert outcome(STORES[name], True, options) == outcome(STORES[name], False, options)


@pytest.mark.parametrize(("name", "stands"), [("all done", MET), ("some failed", NEVER)])
def test_bmod_gives_a_job_such_a_condition(name: str, stands: int) -> None:
    bench = Bench()
    conditions, key = ConditionQueue(bench.cluster.conditions), bench.submit(user="alice")
    ask = Modify(job=str(key), options={"w": 'done("a*")'})
    bench.take(modify(bench.cluster, ask, JobText(command="x"), ALICE, bench.now, LOCAL, stored(STORES[name], True)))
    while events := conditions.settle(bench.cluster, bench.now, LOCAL_TIME, 100):
        bench.apply(*events)
    assert bench.job(key).blocked == stands


@pytest.mark.parametrize(
    ("name", "text", "stands"),
    [("all done", 'done("a*")', MET), ("some failed", 'done("a*")', NEVER), ("some failed", 'ended("a*") && done(1)', BLOCKED)],
)
def test_what_is_met_at_once_keeps_nothing_of_the_others(name: str, text: str, stands: int) -> None:
    bench = Bench()
    bench.submit()
    decided = submit(
        bench.cluster,
        Given(Submit(command="x", options={"w": text}), ALICE, bench.now, LOCAL, known=stored(STORES[name], True)),
    )
    event = next(event for event in decided.events if isinstance(event, ev.JobSubmitted))
    assert (event.met, bool(event.alike), event.ended) == (stands == MET, stands != MET, ())
    bench.apply(*decided.events)
    assert bool(bench.cluster.conditions.rows) == (stands != MET)
    assert bench.job(event.key).blocked == (MET if stands == MET else BLOCKED)
    assert bench.job(event.key).depend == event.depend
