"""Which live jobs a command means by its filters, and how many one request may name."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.guarantees import ServiceClass
from lavad.core.decide.base import select as selection
from lavad.core.decide.base.select import Target, select
from lavad.core.lang.asks import Caller, Refused, Select
from lavad.core.lang.bounds import MAX_IDS
from tests.support.worlds.bench import ADMIN, ALICE, Bench


@pytest.fixture
def site(bench: Bench) -> Bench:
    """1 runs on h1 and 2 on h2, where it is suspended; 3 is in the queue night, 4 an array, 5 held, 6 of bob."""
    bench.configure(host_groups=(("first", ("h1",)), ("any", ("all",))), service_classes=(ServiceClass(name="gold"),))
    bench.placed(name="a", hosts=("h1",))
    bench.placed("USUSP", name="c", hosts=("h2",))
    bench.submit("b", queue="night", group="/g", service_class="gold")
    bench.submit("arr", array="1-3", app="mpi")
    bench.placed("PSUSP", name="a")
    bench.submit("a", user="bob")
    return bench


def found(bench: Bench, wanted: Select, caller: Caller) -> list[str]:
    return [one.shown if isinstance(one, Target) else str(one) for one in select(bench.cluster, wanted, caller)]


@pytest.mark.parametrize(
    ("filters", "last", "every"),
    [
        ({"name": "a"}, ["5"], ["1", "5"]),
        ({"name": "a*"}, ["5"], ["1", "4", "5"]),
        ({"name": "arr"}, ["4"], ["4"]),
        ({"name": "arr[2]"}, ["4[2]"], ["4[2]"]),
        ({"name": "nosuch"}, [], []),
        ({"queue": "night"}, ["3"], ["3"]),
        ({"queue": "normal"}, ["5"], ["1", "2", "4", "5"]),
        ({"group": "/g"}, ["3"], ["3"]),
        ({"group": "/"}, [], []),
        ({"app": "mpi"}, ["4"], ["4"]),
        ({"service_class": "gold"}, ["3"], ["3"]),
        ({"host": "h2"}, ["2"], ["2"]),
        ({"host": "first"}, ["1"], ["1"]),
        ({"host": "any"}, ["2"], ["1", "2"]),
        ({"user": "bob"}, ["6"], ["6"]),
        ({"user": "all"}, ["5"], ["1", "2", "4", "5", "3"]),
        ({"name": "a", "queue": "night"}, [], []),
    ],
)
def test_a_filter_alone_means_the_job_submitted_last_and_with_id_0_all(
    site: Bench, filters: dict[str, str], last: list[str], every: list[str]
) -> None:
    """As in LSF. Of all, started ones come first, then those of the queue with the higher priority."""
    assert found(site, Select(**filters), ALICE) == last  # type: ignore[arg-type]
    assert found(site, Select(ids=["0"], **filters), ALICE) == every


@pytest.mark.parametrize(("state", "every"), [("run", ["1"]), ("susp", ["2"]), ("pend", ["3", "4", "5"])])
def test_a_state_means_all_jobs_in_it(site: Bench, state: str, every: list[str]) -> None:
    assert sorted(found(site, Select(state=state), ALICE)) == every
    assert sorted(found(site, Select(ids=["0"], state=state), ALICE)) == every


def test_without_a_filter_nothing_is_meant_and_id_0_means_all_of_the_caller(site: Bench) -> None:
    assert found(site, Select(), ALICE) == []
    assert found(site, Select(ids=["0"]), ALICE) == ["1", "2", "4", "5", "3"]
    assert found(site, Select(ids=["0"]), ADMIN) == []
    assert found(site, Select(ids=["0"], user="all"), ADMIN) == ["1", "2", "4", "5", "6", "3"]


def test_what_is_named_more_than_once_is_meant_once(site: Bench) -> None:
    """As in LSF: commands say once what they do to a job."""
    wanted = Select(ids=["4[2]", "2", "02", "4[1-2]", "2", "9", "09", "9"])
    assert found(site, wanted, ALICE) == ["4[2]", "2", "4[1]", "9"]
    assert sorted(found(site, Select(ids=["0", "2", "0", "4", "4[1]"]), ALICE)) == ["1", "2", "3", "4", "4[1]", "5"]


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"queue": "nosuch"}, "nosuch: No such queue"),
        ({"host": "nosuch"}, "nosuch: Bad host name, host group name or cluster name"),
        ({"service_class": "nosuch"}, "nosuch: No such service class"),
        ({"state": "done"}, "done: Bad job state: run, pend or susp"),
        ({"ids": ["x"]}, "x: Illegal job ID"),
    ],
)
def test_what_there_is_not_is_named(site: Bench, filters: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused) as refusal:
        select(site.cluster, Select(**filters), ALICE)
    assert refusal.value.text == why


def test_a_request_may_have_so_many_ids(bench: Bench) -> None:
    ids = [str(number) for number in range(1, MAX_IDS + 1)]
    assert len(select(bench.cluster, Select(ids=ids), ALICE)) == MAX_IDS


def test_more_ids_than_a_request_may_have(bench: Bench) -> None:
    with pytest.raises(Refused, match=f"More than {MAX_IDS} job IDs"):
        select(bench.cluster, Select(ids=["1"] * (MAX_IDS + 1)), ALICE)


def test_all_jobs_of_a_user_are_never_too_many(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [bench.bsub()["job"] for _ in range(5)]
    monkeypatch.setattr(selection, "MAX_KEYS", 4)
    assert select(bench.cluster, Select(ids=["0"]), ALICE) == jobs
    assert select(bench.cluster, Select(ids=["0", "99"]), ALICE)[:5] == jobs
    with pytest.raises(Refused, match="More than 4 jobs and elements in one request"):
        select(bench.cluster, Select(ids=["0", "0"]), ALICE)
    with pytest.raises(Refused, match="More than 4 jobs and elements in one request"):
        select(bench.cluster, Select(ids=[str(jobs[0])] * 5), ALICE)
