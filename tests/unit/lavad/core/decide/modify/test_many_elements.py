"""bmod of many elements is made in chunks: what comes of it is the same as in one, and each chunk sees what came between."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.modify import modify as module
from lavad.core.decide.modify.change import Change
from lavad.core.decide.modify.modify import modify
from lavad.core.job.job import Placed
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Modify, OptionValue, Refused
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from tests.support.worlds.bench import ALICE, LOCAL, Bench

ELEMENTS = 9
HOSTS = ("h1", "h2", "h3")
TEXT = JobText(command="c")
OPTIONS: tuple[dict[str, OptionValue], ...] = (
    {"R": "rusage[mem=7]"},
    {"Jd": "said"},
    {"sp": "7"},
    {"W": "5"},
    {"J": "renamed"},
    {"J": "renamed[1-9]"},
    {"g": "/of/mine"},
    {"q": "night"},
    {"w": "done(1)"},
    {"P": "other", "W": "3"},
    {"We+": "5"},
    {"wn": True},
)
FATES = st.lists(st.sampled_from(["waits", "runs", "held", "split", "other", "gone"]), min_size=ELEMENTS, max_size=ELEMENTS)


def world(fates: list[str]) -> tuple[Bench, int]:
    """A job that is held, and an array with an element for each fate."""
    bench = Bench()
    bench.configure(params=replace(bench.cluster.conf.params, lsb_mod_all_jobs=True, max_user_priority=100))
    bench.bsub(H=True)
    job = bench.bsub(J=f"a[1-{ELEMENTS}]")["job"]
    for number, fate in enumerate(fates, 1):
        key = key_of(job, number)
        one = Ranges.span(number, number)
        if fate == "runs":
            bench.apply(
                ev.JobDispatched(
                    at=bench.now, key=key, attempt=1, uid=f"u{number}", parts=(Placed(host=HOSTS[number % 3], slots=1),)
                )
            )
        elif fate == "held":
            bench.apply(ev.ElementsHeld(at=bench.now, key=job, elements=one))
        elif fate == "split":
            bench.apply(ev.ElementSplit(at=bench.now, key=key))
        elif fate == "other":
            bench.apply(ev.JobModified(at=bench.now, key=key, spec=bench.spec(project="p"), name=f"b[{number}]"))
        elif fate == "gone":
            bench.apply(ev.ElementsKilled(at=bench.now, key=job, elements=one))
        bench.now += 7
    return bench, job


def changed(bench: Bench, words: str, options: dict[str, OptionValue], text: JobText = TEXT) -> str:
    """Why not; "": it was made, chunk by chunk."""
    try:
        decided = modify(bench.cluster, Modify(job=words, options=options), text, ALICE, bench.now, LOCAL)
        bench.take(decided)
        while decided.more is not None:
            decided = decided.more(bench.cluster, bench.now)
            bench.take(decided)
    except Refused as refused:
        return refused.text
    assert decided.answer == {"job": words}
    return ""


def records(cluster: Cluster) -> object:
    """All of them, with their specs in place of the numbers."""
    specs = cluster.specs.rows
    jobs = {key: (job, specs[job.spec]) for key, job in cluster.jobs.rows.items()}
    arrays = {key: (array, specs[array.spec]) for key, array in cluster.arrays.rows.items()}
    return jobs, arrays, set(cluster.groups.rows), cluster.ended.rows


@given(
    FATES,
    st.sampled_from(OPTIONS),
    st.sampled_from(["{}", "{}[1-9]", "{}[2-8:2]", "{}[4]"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_chunks_make_what_one_makes(
    fates: list[str], options: dict[str, OptionValue], words: str, size: int, alone: bool
) -> None:
    """``alone``: nothing is kept of what was made of a job for those that are like it."""
    found = []
    with pytest.MonkeyPatch.context() as patched:
        for at_once in (1000, size):
            patched.setattr(module, "AT_ONCE", at_once)
            bench, job = world(fates)
            why = changed(bench, words.format(job), options)
            found.append((why, records(bench.cluster)))
            if alone:
                patched.setattr(Change, "once", lambda change, settle, record, *alike: settle(change, record))
    assert found[0] == found[1]


def test_each_chunk_sees_what_came_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has ended is left, one that runs has only what a running job may get, one that is split has all."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    bench, job = world(["waits"] * ELEMENTS)
    ask = Modify(job=f"{job}[1-8]", options={"q": "night"})
    decided = modify(bench.cluster, ask, TEXT, ALICE, bench.now, datetime(2026, 11, 20, 12, 0))
    bench.take(decided)
    bench.apply(ev.ElementsKilled(at=bench.now, key=job, elements=Ranges.span(3, 3)))
    bench.apply(
        ev.JobDispatched(at=bench.now, key=key_of(job, 4), attempt=1, uid="u", parts=(Placed(host="h1", slots=1),)),
        ev.ElementSplit(at=bench.now, key=key_of(job, 5)),
    )
    while decided.more is not None:
        decided = decided.more(bench.cluster, bench.now)
        bench.take(decided)
    rows = bench.cluster.jobs.rows
    queues = {key >> 32: bench.cluster.specs.rows[row.spec].queue for key, row in rows.items() if key >> 32}
    assert queues == {1: "night", 2: "night", 4: "normal", 5: "night", 6: "night", 7: "night", 8: "night"}


def test_nothing_is_changed_where_one_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 1)
    bench, job = world(["waits"] * ELEMENTS)
    before = records(bench.cluster)
    assert changed(bench, f"{job}[1-8]", {"q": "nowhere"})
    assert records(bench.cluster) == before


def test_a_command_that_was_broken_off_tells_all_jobs_when_it_is_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The master ended after the first chunk, with which the new text is kept."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    bench, job = world(["runs"] * ELEMENTS)
    ask = Modify(job=str(job), options={"oo": "new"})
    decided = modify(bench.cluster, ask, JobText(command="c", output="out"), ALICE, bench.now, LOCAL)
    bench.take(decided)
    [(_, text)] = decided.texts
    assert text.output == "new"
    assert changed(bench, str(job), ask.options, text) == ""
    told = [row.run.amended for row in bench.cluster.jobs.rows.values() if row.run is not None]
    assert told == [(("output", "new"), ("output_overwrite", "1"))] * ELEMENTS


@pytest.mark.parametrize(("running", "before"), [(0, 4), (1, 3)])
def test_a_later_chunk_that_is_refused_says_that_earlier_ones_were_changed(
    running: int, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue has gone meanwhile; what runs had no change to begin with."""
    monkeypatch.setattr(module, "AT_ONCE", 2)
    bench, job = world(["runs"] * running + ["waits"] * (ELEMENTS - running))
    ask = Modify(job=f"{job}[1-8]", options={"q": "night"})
    decided = modify(bench.cluster, ask, TEXT, ALICE, bench.now, LOCAL)
    bench.take(decided)
    assert decided.more is not None
    decided = decided.more(bench.cluster, bench.now)
    bench.take(decided)
    bench.configure(queues=tuple(queue for queue in bench.cluster.conf.queues if queue.name != "night"))
    assert decided.more is not None
    with pytest.raises(Refused, match=rf"^night: No such queue; {before} of the 8 jobs and elements were changed before$"):
        decided.more(bench.cluster, bench.now)
    queues = [bench.cluster.specs.rows[row.spec].queue for key, row in bench.cluster.jobs.rows.items() if key >> 32]
    assert queues.count("night") == before
