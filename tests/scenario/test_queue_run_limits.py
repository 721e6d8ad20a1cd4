"""lsb.queues, parameter by parameter: run limits that the scheduler sets or moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core.job.job import End
from lavad.core.lang.states import TermReason
from tests.scenario.queue_proofs import Proofs, other
from tests.scenario.queue_site import QueueSite

PROOFS = Proofs()


@pytest.mark.parametrize("name", PROOFS)
def test_parameter(name: str, tmp_path: Path) -> None:
    PROOFS.play(name, tmp_path)


LAZY = "PRIORITY = 1\nBACKFILL = Y\nRUNLIMIT = 600\nINTERRUPTIBLE_BACKFILL = 60\nREQUEUE_EXIT_VALUES = 140"
OTHERS = other("big", "PRIORITY = 50\nSLOT_RESERVE = MAX_RESERVE_TIME[100]") + other("plain", "PRIORITY = 30")


@PROOFS.of("INTERRUPTIBLE_BACKFILL", LAZY, OTHERS)
def interruptible_backfill(site: QueueSite) -> None:
    assert site.started({"q": "plain", "n": "10", "W": "60"}) == [0]
    key = site.bsub(W="1000")
    assert site.cluster.spec_of(key).limits.run == 36_000, "what a job asks for does not count"
    site.bsub(q="big", n="12", W="10")
    assert site.turn() == [key]
    run = site.job(key).run
    assert run is not None
    assert run.limits is not None
    assert run.limits.run == 3600
    end = End(status=140 << 8, at=site.now, limit=TermReason.TERM_RUNLIMIT)
    site.hear("ended", key, run.uid, run.parts[0].host, end, True)
    assert (site.state(key), site.job(key).requeues) == ("PEND", 1)
    assert site.turn() == [key], "at once: its time was over, and nothing was wrong with it"


@PROOFS.of("INTERRUPTIBLE_BACKFILL", LAZY.replace("140", "3"))
def interruptible_backfill_does_not_requeue_by_itself(site: QueueSite) -> None:
    key = site.bsub()
    assert site.turn() == [key]
    run = site.job(key).run
    assert run is not None
    assert run.limits is None
    site.hear("ended", key, run.uid, run.parts[0].host, End(status=140 << 8, at=site.now, limit=TermReason.TERM_RUNLIMIT), True)
    assert site.state(key) == "EXIT"
