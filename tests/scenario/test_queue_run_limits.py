"""lsb.queues, parameter by parameter: run limits that move, how long jobs may wait, what they may reserve."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lavad.core.decide.modify.switch import switch
from lavad.core.job.job import End
from lavad.core.lang.asks import Caller, Select, Switch
from lavad.core.lang.states import TermReason
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View
from tests.scenario.queue_proofs import Proofs, other
from tests.scenario.queue_site import QueueSite
from tests.support.worlds.query_cluster import QueryCluster

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


EXTENDED = "PRIORITY = 30\nEXTENDABLE_RUNLIMIT = BASE[60] INCREMENT[30] GRACE[5] REQUEUE[Y]"


@PROOFS.of("EXTENDABLE_RUNLIMIT", EXTENDED)
def extendable_runlimit_is_extended(site: QueueSite) -> None:
    key = site.bsub()
    assert site.turn() == [key]
    site.turn(3599)
    assert moved(site, key) == (0, None)
    site.turn(1)
    assert moved(site, key) == (90 * 60, None)
    site.turn(1800)
    assert moved(site, key) == (120 * 60, None)


@PROOFS.of("EXTENDABLE_RUNLIMIT", EXTENDED, other("same", "PRIORITY = 30"))
def extendable_runlimit_ends_a_job_whose_slots_others_need(site: QueueSite) -> None:
    keys = site.started(*[{}] * 12)
    assert len(keys) == 12
    site.bsub(q="same", n="2")
    site.turn(3600)
    assert sorted(moved(site, key) for key in site.running()) == [(-1, 3900)] * 2 + [(5400, None)] * 10
    key = next(key for key in site.running() if moved(site, key)[1])
    run = site.job(key).run
    assert run is not None
    site.hear("ended", key, run.uid, run.parts[0].host, End(status=140 << 8, at=site.now, limit=TermReason.TERM_RUNLIMIT), True)
    assert site.state(key) == "PEND", "REQUEUE[Y]"


@PROOFS.of("EXTENDABLE_RUNLIMIT", EXTENDED.replace("[Y]", "[N]"), other("low", "PRIORITY = 29"))
def extendable_runlimit_is_extended_beside_jobs_of_a_lower_priority(site: QueueSite) -> None:
    site.started(*[{}] * 12)
    site.bsub(q="low")
    site.turn(3600)
    assert {moved(site, key) for key in site.running()} == {(5400, None)}


def moved(site: QueueSite, key: int) -> tuple[int, int | None]:
    """The soft limit of a job that runs, and its own run limit."""
    run = site.job(key).run
    assert run is not None
    return run.soft_limit, run.limits.run if run.limits is not None else None


@PROOFS.of("PEND_TIME_LIMIT ELIGIBLE_PEND_TIME_LIMIT", "PEND_TIME_LIMIT = 1:30\nELIGIBLE_PEND_TIME_LIMIT = 30", other("other"))
def pend_time_limits(site: QueueSite) -> None:
    view = View(site.cluster, site.soft, lambda: QueryCluster().store, master="h1", lsf={})
    plain = site.spec_of()
    assert jobfacts.pend_limits(view, plain, site.text) == (5400, 1800)
    own = site.spec_of(ptl="10")
    assert jobfacts.pend_limits(view, own, site.text) == (600, 1800)
    assert jobfacts.pend_limits(view, site.spec_of(q="other"), site.text) == (0, 0)


HIGH = other("high", "PRIORITY = 60\nPREEMPTION = PREEMPTIVE")


@PROOFS.of("MAX_TOTAL_TIME_PREEMPT", "PRIORITY = 20\nMAX_TOTAL_TIME_PREEMPT = 5", HIGH)
def max_total_time_preempt(site: QueueSite) -> None:
    low = site.bsub(n="12")
    site.turn()
    states = []
    for _ in range(2):
        high = site.bsub(q="high")
        site.turn(301)
        states.append(site.state(low))
        if site.state(high) == "RUN":
            site.later(300)
            site.ends(high)
        site.turn()
    assert states == ["SSUSP", "RUN"]


@PROOFS.of("ESTIMATED_RUNTIME", "ESTIMATED_RUNTIME = 1:30", other("other"))
def estimated_runtime(site: QueueSite) -> None:
    assert (site.spec_of().estimate, site.spec_of(We="10").estimate, site.spec_of(q="other").estimate) == (5400, 600, 0)


@PROOFS.of("JOB_SIZE_LIST", "JOB_SIZE_LIST = 4 2 8\nTASKLIMIT = 3")
def job_size_list(site: QueueSite) -> None:
    assert (site.spec_of().slots, site.spec_of(n="2").slots, site.spec_of(n="8").slots) == (4, 2, 8)
    for wrong in ("3", "2,8", "16"):
        assert site.refused(n=wrong) == "Job size is not one of those allowed: 4 2 8"


@PROOFS.of("RESRSV_LIMIT", "RESRSV_LIMIT = [mem={100,}4000] [tmp=50]")
def resrsv_limit(site: QueueSite) -> None:
    parts = "2*{rusage[mem=100]}+1*{rusage[mem=200]}"
    for fits in ("rusage[mem=100]", "rusage[mem=4000:tmp=50]", "rusage[swp=9000]", parts, "select[mem>9]"):
        assert site.refused(R=fits, n="3") == ""
    wrong = "Resource reservation is not within the queue's limits"
    assert site.refused(R="rusage[mem=99]") == f"mem=99: {wrong} (100 to 4000)"
    assert site.refused(R="{rusage[mem=100]} || {rusage[mem=5000]}") == f"mem=5000: {wrong} (100 to 4000)"
    assert site.refused(R="rusage[tmp=51]") == f"tmp=51: {wrong} (0 to 50)"
    assert site.refused() == "", "it reserves nothing"


def test_one_that_runs_may_reserve_less_than_the_queue_it_is_switched_to_asks_for(tmp_path: Path) -> None:
    site = QueueSite(tmp_path, "RESRSV_LIMIT = [mem=100,4000]", other("other"))
    little, much = (site.bsub(q="other", R=f"rusage[mem={amount}]") for amount in (50, 5000))
    site.turn()
    waits = site.bsub(q="other", R="rusage[mem=50]")
    ask = Switch(queue="q", jobs=Select(ids=[str(key) for key in (little, much, waits)]))
    answer = switch(site.cluster, ask, Caller("ann", 1000, "h1"), site.now).answer["results"]
    assert [row["why"].partition(":")[0] for row in answer] == ["", "mem=5000", "mem=50"]


def test_sizes_of_reservations_have_the_unit_of_the_site(tmp_path: Path) -> None:
    site = QueueSite(tmp_path, "RESRSV_LIMIT = [mem=1,4] [licence=1,4]", lsf__conf="LSF_UNIT_FOR_LIMITS=GB\n")
    assert site.queue.resrsv_limit == (("mem", 1024.0, 4096.0), ("licence", 1.0, 4.0))
    assert site.refused(R="rusage[mem=2]") == ""


@pytest.mark.parametrize("to_bottom", [False, True])
def test_where_a_job_waits_that_its_exit_code_sends_back(to_bottom: bool, tmp_path: Path) -> None:
    site = QueueSite(tmp_path, "HOSTS = h1\nREQUEUE_EXIT_VALUES = 3")
    site.configure(params=replace(site.cluster.conf.params, lsb_requeue_to_bottom=to_bottom))
    first = site.bsub(n="4")
    site.turn()
    site.later(10)
    other = site.bsub(n="4")
    site.later(10)
    site.ends(first, 3)
    assert site.turn() == [other if to_bottom else first]
