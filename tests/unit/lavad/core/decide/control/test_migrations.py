"""bsub -mig: when a job that the system suspended goes elsewhere."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.decide.control.migrations import migrations
from lavad.core.lang.asks import Refused
from lavad.core.site.conf import QueueConf
from tests.unit.lavad.core.conftest import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod


@pytest.mark.parametrize(("own", "queue", "wanted"), [(300, None, 300), (300, 60, 300), (0, 60, 0), (-1, 60, 60)])
def test_the_jobs_own_threshold_goes_before_the_queues(bench: Bench, own: int, queue: int | None, wanted: int) -> None:
    bench.queues(QueueConf(name="normal", migrate_after=queue))
    key = bench.placed("SSUSP", rerunnable=True, migrate_after=own)
    since = bench.job(key).since
    assert not wanted or migrations(bench.cluster, since + wanted - 1).events == []
    (wished,) = migrations(bench.cluster, since + wanted).events
    assert isinstance(wished, ev.JobWished)
    assert wished.wish.kind == "migrate"


def test_it_is_given_in_minutes_and_taken_back(bench: Bench) -> None:
    key = bench.bsub(mig="5")["job"]
    assert bench.cluster.spec_of(key).migrate_after == 300
    bmod(bench, key, mign=True)
    assert bench.cluster.spec_of(key).migrate_after == -1


@pytest.mark.parametrize("text", ["", "-1", "x", "1:00", "9" * 20, "٣"])
def test_what_is_no_threshold(bench: Bench, text: str) -> None:
    with pytest.raises(Refused, match="Bad migration threshold"):
        bench.bsub(mig=text)
