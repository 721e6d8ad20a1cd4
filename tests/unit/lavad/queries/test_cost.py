"""Which queries are answered at once, and which get a process of their own."""

from __future__ import annotations

import pytest

from lavad.core.lang.asks import OptionValue, Query
from lavad.core.site.conf import Params
from lavad.queries import cost
from lavad.queries.cost import FEW, is_list, is_short
from tests.support.worlds.bench import ALICE, BOB, Bench


@pytest.fixture
def full() -> Bench:
    """Alice has an array (job 1) and very many elements of it, bob one job."""
    bench = Bench()
    bench.configure(params=Params(max_job_array_size=10**6))
    bench.bsub(J="a[1-50000]")
    bench.bsub(BOB)
    return bench


@pytest.mark.parametrize(
    ("command", "options", "words", "of_alice", "of_bob"),
    [
        ("bjobs", {}, [], False, True),
        ("bjobs", {"l": True, "q": "normal"}, [], False, True),
        ("bjobs", {"u": "all"}, [], False, False),
        ("bjobs", {"a": True}, [], False, False),
        ("bjobs", {"u": "all"}, ["2"], True, True),
        ("bjobs", {}, ["1"], False, False),
        ("bjobs", {}, ["1[1-50]"], True, True),
        ("bjobs", {}, ["0"], False, True),
        ("bjobs", {}, ["7"] * (FEW + 1), False, False),
        ("bjobs", {}, ["nonsense"], True, True),
        ("bhosts", {"l": True}, [], True, True),
        ("bqueues", {}, [], True, True),
        ("bacct", {}, [], False, False),
        ("bhist", {}, ["2"], False, False),
    ],
)
def test_what_is_short(
    full: Bench, command: str, options: dict[str, OptionValue], words: list[str], of_alice: bool, of_bob: bool
) -> None:
    query = Query(command=command, options=options, words=words)
    assert is_short(full.cluster, query, ALICE) is of_alice
    assert is_short(full.cluster, query, BOB) is of_bob


def test_why_is_short_where_there_is_little_to_try() -> None:
    """It tries the scheduler on all classes and hosts, and several jobs of one request take as long as they take together."""
    bench = Bench()
    for number in range(cost.FEW_PLACES // len(bench.cluster.hosts.rows)):
        bench.submit(project=f"p{number}")
    one, two = (Query(command="why", words=["1"] * count) for count in (1, 2))
    record = Query(command="api", words=["why", "1"])
    assert is_short(bench.cluster, one, ALICE)
    assert is_short(bench.cluster, record, ALICE)
    assert not is_short(bench.cluster, two, ALICE)
    bench.submit(project="another")
    assert not is_short(bench.cluster, one, ALICE)
    assert not is_short(bench.cluster, record, ALICE)


def test_a_few_jobs_of_all_users_are_short() -> None:
    bench = Bench()
    bench.bsub(J="a[1-10]")
    assert is_short(bench.cluster, Query(command="bjobs", options={"u": "all"}), BOB)
    assert is_short(bench.cluster, Query(command="bjobs", options={"w": True, "u": "all"}), BOB)
    assert not is_short(bench.cluster, Query(command="bjobs", options={"u": "all", "a": True}), BOB)


@pytest.mark.parametrize(
    ("command", "options", "words", "listed"),
    [
        ("bjobs", {}, [], True),
        ("bjobs", {"u": "all", "w": True, "q": "normal"}, [], True),
        ("bjobs", {"G": "gold"}, [], True),
        ("bjobs", {"u": "all", "l": True}, [], False),
        ("bjobs", {"u": "all", "p": True}, [], False),
        ("bjobs", {"o": "jobid"}, [], False),
        ("bjobs", {"a": True}, [], False),
        ("bjobs", {}, ["0"], False),
        ("bhist", {}, [], False),
    ],
)
def test_what_is_a_plain_list(
    full: Bench, command: str, options: dict[str, OptionValue], words: list[str], listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(command=command, options=options, words=words)
    assert is_list(full.cluster, query) is listed
    monkeypatch.setattr(cost, "MOST_ROWS", 1000)
    assert not is_list(full.cluster, query)
    full.configure(params=Params(lsb_bjobs_format="jobid command"))
    assert not is_list(full.cluster, query)
