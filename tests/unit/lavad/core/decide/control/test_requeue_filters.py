"""brequeue by filters: which jobs the states of -d, -e, -r and -a choose."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.decide.control import control
from lavad.core.decide.control.revive import FinishedJobs, requeue_all
from lavad.core.lang.asks import Requeue, Select
from tests.support.worlds.bench import ALICE, Bench


@pytest.mark.parametrize(
    ("states", "id0", "named"),
    [(["RUN"], [3], [3]), (["USUSP"], [2], [2]), (["RUN", "USUSP"], [2, 3], [3]), (["EXIT"], [], []), (["PSUSP"], [], [])],
)
def test_states_of_brequeue_only_filter(bench: Bench, states: list[str], id0: list[int], named: list[int]) -> None:
    bench.submit(name="a", slots=99)
    for state in ("USUSP", "RUN", "PSUSP"):
        bench.placed(state, name="a")
    bench.submit(name="a", array="1-2", slots=99)

    def asked(**select: Any) -> list[tuple[str, str]]:
        ask = Requeue(jobs=Select(**select), states=states)
        return sorted((row["id"], row["why"]) for row in control.requeue(bench.cluster, ask, ALICE, bench.now).answer["results"])

    assert asked(ids=["0"]) == [(str(key), "") for key in id0]
    assert asked(name="a") == [(str(key), "") for key in named]
    assert asked(name="b") == []
    assert asked(ids=["4"])[0][1]


def test_brequeue_without_an_id_takes_the_last_job_alive_or_not(bench: Bench) -> None:
    first, second = bench.placed(name="a"), bench.placed(name="a")
    ask = Requeue(jobs=Select(name="a"), states=["RUN", "EXIT"])

    def asked() -> list[tuple[str, str]]:
        ended = [job for _, job in sorted(bench.cluster.finished.items())][-1:]
        finished = FinishedJobs(jobs=ended, specs=dict(bench.cluster.specs.rows))
        answer = requeue_all(bench.cluster, ask, finished, ALICE, bench.now).answer
        return [(row["id"], row["why"]) for row in answer["results"]]

    bench.ended(first, "h1", status=256)
    assert asked() == [(str(second), "")]
    bench.ended(second, "h1", status=256)
    third = bench.placed(name="a")
    assert asked() == [(str(third), "")]
    bench.ended(third, "h1", status=256)
    assert asked() == [(str(third), "")]
