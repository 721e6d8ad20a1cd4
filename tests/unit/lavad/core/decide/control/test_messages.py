"""bpost: the message goes into the job's record, what is attached to it into the store alone."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import messages
from lavad.core.decide.control.messages import MAX_BODY, MOST_ATTACHED, MOST_ELEMENTS, post
from lavad.core.lang.asks import Post, Refused, Select
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ADMIN, ALICE, BOB, Bench


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.configure(params=Params(max_job_array_size=10**6, max_user_records=10**6))
    return made


def posted(bench: Bench, job: str, number: int = 0, body: str = "") -> Decided:
    decided = post(bench.cluster, Post(job=job, text="t", number=number, body=body), ALICE, bench.now)
    bench.take(decided)
    return decided


def test_attached_data_is_in_no_record(bench: Bench) -> None:
    bench.bsub()
    decided = posted(bench, "1", 3, "d" * MAX_BODY)
    assert decided.attached == [(1, 3, "d" * MAX_BODY)]
    (message,) = bench.job(1).messages
    assert (message.attached, message.size, message.body) == (1, MAX_BODY, "")
    assert len(msgspec.msgpack.encode(bench.job(1))) < 300
    assert sum(len(msgspec.msgpack.encode(event)) for event in decided.events) < 300


def test_a_whole_array_shares_one_copy_and_elements_have_their_own(bench: Bench) -> None:
    bench.bsub(J="a[1-1000000]")
    posted(bench, "1[7]")
    assert posted(bench, "1", 1, "all").attached == [(1, 1, "all")]
    assert [m.attached for m in bench.job(key_of(1, 7)).messages] == [0, 1]
    assert posted(bench, "1[8-9]", 1, "two").attached == [(key_of(1, 8), 1, "two"), (key_of(1, 9), 1, "two")]
    with pytest.raises(Refused, match=f"at most {MOST_ATTACHED} elements"):
        posted(bench, f"1[1-{MOST_ATTACHED + 1}]", 1, "many")
    with pytest.raises(Refused, match=f"At most {MOST_ELEMENTS} elements"):
        posted(bench, f"1[1-{MOST_ELEMENTS + 1}]")


def test_one_without_data_takes_none(bench: Bench) -> None:
    bench.bsub()
    assert posted(bench, "1").attached == []
    assert bench.job(1).messages[0].attached == 0


def test_a_job_is_named_and_the_last_of_the_callers_own_is_meant(bench: Bench) -> None:
    for caller in (ALICE, ALICE, ADMIN):
        bench.bsub(caller, J="night")
    bench.bsub(J="day")
    asked = Post(job="", text="t", select=Select(name="night"))
    decided = post(bench.cluster, asked, ALICE, bench.now)
    assert decided.answer == {"job": "2"}
    assert post(bench.cluster, asked, ADMIN, bench.now).answer == {"job": "3"}
    with pytest.raises(Refused, match="Job <night> is not found"):
        post(bench.cluster, asked, BOB, bench.now)


@given(st.integers(1, 4), st.sampled_from(["1", "1[1-9]", "1[3-8:2]", "1[4]"]), st.booleans())
def test_chunks_post_what_one_does(size: int, words: str, attached: bool) -> None:
    """To elements that wait, are held, have a record of their own or run, one of them by itself after the first chunk."""
    found = []
    with pytest.MonkeyPatch.context() as patched:
        for at_once in (1000, size):
            patched.setattr(messages, "AT_ONCE", at_once)
            bench = Bench()
            bench.bsub(J="a[1-9]")
            bench.apply(ev.ElementsHeld(at=bench.now, key=1, elements=Ranges.span(2, 3)))
            bench.apply(*[ev.ElementSplit(at=bench.now, key=key_of(1, index)) for index in (3, 5)])
            bench.apply(ev.ElementsKilled(at=bench.now, key=1, elements=Ranges.span(6, 6)))
            bench.step()
            ask = Post(job=words, text="t", number=1, body="data" if attached else "")
            decided = post(bench.cluster, ask, ALICE, bench.now)
            bodies = decided.attached
            while decided.more is not None:
                bench.take(decided)
                decided = decided.more(bench.cluster, bench.now)
            answer = bench.take(decided)
            found.append((answer, bodies, dict(bench.cluster.jobs.rows), dict(bench.cluster.arrays.rows)))
    assert found[0] == found[1]
    assert found[0][0] == {"job": words}


def test_elements_that_end_between_chunks_get_none(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "AT_ONCE", 2)
    bench.bsub(J="a[1-5]")
    decided = post(bench.cluster, Post(job="1[1-5]", text="t"), ALICE, bench.now)
    bench.take(decided)
    bench.apply(ev.ElementsKilled(at=bench.now, key=1, elements=Ranges.span(4, 5)))
    while decided.more is not None:
        decided = decided.more(bench.cluster, bench.now)
        bench.take(decided)
    assert [key >> 32 for key, job in bench.cluster.jobs.rows.items() if job.messages] == [1, 2, 3]
