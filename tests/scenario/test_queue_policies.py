"""lsb.queues, parameter by parameter: when jobs start, whose turn it is, what stops them, and what their exit means."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core import events as ev
from lavad.core.decide.control.by_time import migrations
from lavad.core.lang.states import JobState
from lavad.core.rules.run_settings import run_settings, text_settings
from lavad.core.site.pend_reason import PendReason as R
from lavad.queries.facts import queuefacts
from lavad.queries.frame.view import View
from tests.scenario.queue_proofs import Proofs, other
from tests.scenario.queue_site import QueueSite
from tests.support.worlds.query_cluster import QueryCluster

PROOFS = Proofs()
ANN, BOB, EVE = {"user": "ann"}, {"user": "bob"}, {"user": "eve"}
WHOLE = {"n": "12"}


@pytest.mark.parametrize("name", PROOFS)
def test_parameter(name: str, tmp_path: Path) -> None:
    PROOFS.play(name, tmp_path)


@PROOFS.of("RUN_WINDOW", "RUN_WINDOW = 20:00-8:00 13:00-14:00")
def run_window(site: QueueSite) -> None:
    key = site.bsub()
    assert site.turn() == []
    assert site.why(key) == [(R.QUE_WINDOW, 0)]
    site.local = (1, 13 * 3600)
    assert site.turn() == [key]
    site.local = (1, 14 * 3600 + 1)
    site.turn(60)
    assert site.state(key) == "SSUSP"
    site.local = (1, 21 * 3600)
    site.turn(60)
    assert site.state(key) == "RUN"


@PROOFS.of("RUN_WINDOW", "RUN_WINDOW = 6:19:00-1:8:30")
def run_window_over_the_week_end(site: QueueSite) -> None:
    key = site.bsub()
    site.local = (5, 20 * 3600)
    assert site.turn() == []
    site.local = (0, 12 * 3600)
    assert site.turn() == [key]


@PROOFS.of("DISPATCH_WINDOW", "DISPATCH_WINDOW = 18:00-19:00")
def dispatch_window(site: QueueSite) -> None:
    key = site.bsub()
    assert site.turn() == []
    site.local = (1, 18 * 3600)
    assert site.turn() == [key]
    site.local = (1, 20 * 3600)
    site.turn(60)
    assert site.state(key) == "RUN", "it closes for starts only"


@PROOFS.of("IGNORE_DEADLINE", "RUN_WINDOW = 12:00-13:00\nIGNORE_DEADLINE = Y", other("strict", "RUN_WINDOW = 12:00-13:00"))
def ignore_deadline(site: QueueSite) -> None:
    assert site.started({"q": "strict", "W": "90"}, {"q": "q", "W": "90"}, {"q": "strict", "W": "30"}) == [1, 2]


@PROOFS.of("NEW_JOB_SCHED_DELAY", "NEW_JOB_SCHED_DELAY = 30")
def new_job_sched_delay(site: QueueSite) -> None:
    key = site.bsub()
    assert (site.turn(), site.turn(29), site.turn(2)) == ([], [], [key])


@PROOFS.of("JOB_ACCEPT_INTERVAL", "JOB_ACCEPT_INTERVAL = 2\nHOSTS = h1")
def job_accept_interval(site: QueueSite) -> None:
    keys = [site.bsub() for _ in range(2)]
    assert (site.turn(), site.turn(19), site.turn(2)) == (keys[:1], [], keys[1:]), "MBD_SLEEP_TIME is 10"


@PROOFS.of("FAIRSHARE", "FAIRSHARE = USER_SHARES[[ann, 3] [bob, 1]]")
def fairshare(site: QueueSite) -> None:
    begun = site.started(*[ANN] * 12, *[BOB] * 12)
    assert sum(1 for at in begun if at < 12) == 9, "three of four slots are ann's"
    assert "eve has no share" in site.refused(user="eve")


@PROOFS.of("FAIRSHARE", "FAIRSHARE = USER_SHARES[[dev@, 1] [default, 1]]")
def fairshare_of_a_groups_members(site: QueueSite) -> None:
    begun = site.started(*[ANN] * 12, *[BOB] * 12, *[EVE] * 12)
    assert [sum(1 for at in begun if at // 12 == who) for who in range(3)] == [4, 4, 4]


FACTORS = "HIST_HOURS RUN_JOB_FACTOR RUN_TIME_FACTOR CPU_TIME_FACTOR ENABLE_HIST_RUN_TIME RUN_TIME_DECAY"


@PROOFS.of(
    FACTORS + " COMMITTED_RUN_TIME_FACTOR GPU_RUN_TIME_FACTOR ENABLE_GPU_HIST_RUN_TIME",
    "\n".join(
        [
            "FAIRSHARE = USER_SHARES[[default, 1]]",
            "HIST_HOURS = 10",
            "RUN_JOB_FACTOR = 1",
            "RUN_TIME_FACTOR = 2",
            "CPU_TIME_FACTOR = 0",
            "ENABLE_HIST_RUN_TIME = Y",
            "RUN_TIME_DECAY = Y",
            "COMMITTED_RUN_TIME_FACTOR = 0.5",
            "GPU_RUN_TIME_FACTOR = 0.25",
            "ENABLE_GPU_HIST_RUN_TIME = Y",
        ]
    ),
)
def fairshare_factors(site: QueueSite) -> None:
    share = site.queue.share
    assert share is not None
    factors = (
        share.hist_hours,
        share.run_job_factor,
        share.run_time_factor,
        share.cpu_time_factor,
        share.committed_run_time_factor,
        share.gpu_run_time_factor,
    )
    assert factors == (10.0, 1.0, 2.0, 0.0, 0.5, 0.25)
    assert (share.enable_hist_run_time, share.enable_gpu_hist_run_time, share.run_time_decay) == (True, True, True)


@PROOFS.of("FAIRSHARE_QUEUES", "PRIORITY = 40\nFAIRSHARE = USER_SHARES[[default, 1]]\nFAIRSHARE_QUEUES = low", other("low"))
def fairshare_queues(site: QueueSite) -> None:
    begun = site.started(*[ANN | {"q": "q"}] * 12, *[BOB | {"q": "low"}] * 12)
    assert len([at for at in begun if at >= 12]) == 6, "bob has his part, though his jobs wait in the lower queue"


LINES = "PRIORITY = 40\nFAIRSHARE = USER_SHARES[[default, 1]]\nQUEUE_GROUP = low\nDISPATCH_ORDER = QUEUE"


@PROOFS.of("DISPATCH_ORDER QUEUE_GROUP", LINES, other("low"))
def dispatch_order(site: QueueSite) -> None:
    begun = site.started(*[ANN | {"q": "q"}] * 12, *[BOB | {"q": "low"}] * 12)
    assert [at for at in begun if at >= 12] == []


@PROOFS.of("ROUND_ROBIN_POLICY", "ROUND_ROBIN_POLICY = Y")
def round_robin_policy(site: QueueSite) -> None:
    begun = site.started(*[ANN] * 12, *[BOB] * 12)
    assert sum(1 for at in begun if at >= 12) == 6


@PROOFS.of("APS_PRIORITY", "APS_PRIORITY = WEIGHT[[JPRIORITY, 1] [PROC, 50]]")
def aps_priority(site: QueueSite) -> None:
    keys = [site.bsub(sp="90", n="4"), site.bsub(sp="10", n="12"), site.bsub(sp="95", n="4")]
    assert site.turn() == keys[1:2], "twelve slots count more than a priority"


@PROOFS.of("DOMINANT_RESOURCES", "FAIRSHARE = USER_SHARES[[default, 1]]\nDOMINANT_RESOURCES = slots mem")
def dominant_resources(site: QueueSite) -> None:
    begun = site.started(*[ANN | {"R": "rusage[mem=8000]"}] * 12, *[BOB] * 12)
    assert sum(1 for at in begun if at < 12) < sum(1 for at in begun if at >= 12), "memory is what ann has most of"


@PROOFS.of("PREEMPTION", "PRIORITY = 60\nPREEMPTION = PREEMPTIVE[low]", other("low", "PRIORITY = 20"))
def preemption(site: QueueSite) -> None:
    low = site.bsub(q="low", **WHOLE)
    site.turn()
    high = site.bsub(q="q", n="4")
    site.turn(60)
    assert (site.turn(), site.state(low), site.state(high)) == ([], "SSUSP", "RUN")
    site.apply(ev.JobFinished(at=site.now, key=low, state=JobState.EXIT))


@PROOFS.of("PREEMPTION", "PRIORITY = 20\nPREEMPTION = PREEMPTABLE[high]", other("high", "PRIORITY = 60"))
def preemption_said_by_the_victim(site: QueueSite) -> None:
    low = site.bsub(q="q", **WHOLE)
    site.turn()
    site.bsub(q="high")
    site.turn(60)
    assert site.state(low) == "SSUSP"


@PROOFS.of("PREEMPT_DELAY", "PRIORITY = 60\nPREEMPTION = PREEMPTIVE\nPREEMPT_DELAY = 100", other("low", "PRIORITY = 20"))
def preempt_delay(site: QueueSite) -> None:
    low = site.bsub(q="low", **WHOLE)
    site.turn()
    site.bsub(q="q")
    states = []
    for seconds in (0.0, 90.0, 11.0):
        site.turn(seconds)
        states.append(site.state(low))
    assert states == ["RUN", "RUN", "SSUSP"]


HIGH = other("high", "PRIORITY = 60\nPREEMPTION = PREEMPTIVE")


@PROOFS.of("NO_PREEMPT_RUN_TIME", "PRIORITY = 20\nNO_PREEMPT_RUN_TIME = 10", HIGH)
def no_preempt_run_time(site: QueueSite) -> None:
    old = site.bsub(q="q", n="8")
    site.turn()
    new = site.bsub(q="q", n="4") if site.turn(601) == [] else 0
    site.turn()
    site.bsub(q="high")
    site.turn()
    assert (site.state(old), site.state(new)) == ("RUN", "SSUSP")


@PROOFS.of("NO_PREEMPT_FINISH_TIME", "PRIORITY = 20\nNO_PREEMPT_FINISH_TIME = 10", HIGH)
def no_preempt_finish_time(site: QueueSite) -> None:
    soon, late = site.bsub(q="q", n="4", W="9"), site.bsub(q="q", n="8", W="90")
    site.turn()
    site.bsub(q="high")
    site.turn(30)
    assert (site.state(soon), site.state(late)) == ("RUN", "SSUSP")


@PROOFS.of("NO_PREEMPT_INTERVAL", "PRIORITY = 20\nNO_PREEMPT_INTERVAL = 10", HIGH)
def no_preempt_interval(site: QueueSite) -> None:
    low = site.bsub(q="q", **WHOLE)
    site.turn()
    site.bsub(q="high")
    site.turn(300)
    assert site.state(low) == "RUN"
    site.turn(301)
    assert site.state(low) == "SSUSP"


@PROOFS.of("MAX_JOB_PREEMPT", "PRIORITY = 20\nMAX_JOB_PREEMPT = 1", HIGH)
def max_job_preempt(site: QueueSite) -> None:
    low = site.bsub(q="q", **WHOLE)
    site.turn()
    states = []
    for _ in range(2):
        high = site.bsub(q="high")
        site.turn(60)
        states.append(site.state(low))
        if site.state(high) == "RUN":
            site.ends(high)
        site.turn(60)
    assert states == ["SSUSP", "RUN"]


@PROOFS.of(
    "SLOT_RESERVE BACKFILL",
    "PRIORITY = 50\nSLOT_RESERVE = MAX_RESERVE_TIME[100]",
    other("fill", "PRIORITY = 40\nBACKFILL = Y") + other("plain", "PRIORITY = 30"),
)
def slot_reserve_and_backfill(site: QueueSite) -> None:
    assert site.started({"q": "plain", "n": "10", "W": "60"}) == [0]
    site.bsub(q="q", n="12", W="10")
    assert site.turn() == []
    assert site.started({"q": "plain", "W": "30"}, {"q": "fill", "W": "90"}, {"q": "fill", "W": "30"}) == [2]


HOLDS = "PRIORITY = 50\nRESOURCE_RESERVE = MAX_RESERVE_TIME[100]\nHOSTS = h1"


@PROOFS.of("RESOURCE_RESERVE", HOLDS, other("plain", "HOSTS = h1"))
def resource_reserve(site: QueueSite) -> None:
    mem = {"R": "rusage[mem=6000]"}
    assert site.started(mem | {"q": "plain", "W": "60"}, mem | {"q": "plain", "W": "60"}) == [0, 1]
    site.bsub(q="q", R="rusage[mem=9000]", W="10")
    assert site.turn() == []
    assert site.started({"q": "plain", "W": "600", "R": "rusage[mem=3000]"}) == []


@PROOFS.of("GANG", "GANG = N")
def gang(site: QueueSite) -> None:
    site.started({"n": "10"})
    key = site.bsub(n="4")
    site.turn()
    assert sum(part.slots for part in site.job(key).promised) == 2, "it takes them as they come"


@PROOFS.of("SCHEDULER", "SCHEDULER = shortest")
def scheduler(site: QueueSite) -> None:
    keys = [site.bsub(n="12", W="60"), site.bsub(n="12", W="10")]
    assert site.turn() == keys[1:]


OWNS = "WEIGHT = 2\nCAPABILITY = 9\nGUARANTEE = 3\nRECLAIMABLE = N"


@PROOFS.of("WEIGHT CAPABILITY GUARANTEE RECLAIMABLE", OWNS, other("low", "RECLAIMABLE = N"))
def ownership(site: QueueSite) -> None:
    assert len(site.started(*[{"q": "low"}] * 12)) == 9, "three are kept for q"
    assert len(site.started(*[{"q": "q"}] * 12)) == 3
    assert (site.queue.weight, site.queue.reclaimable) == (2, False)


@PROOFS.of("WEIGHT CAPABILITY GUARANTEE", "WEIGHT=3\nCAPABILITY=slots:9 gpus:3\nGUARANTEE=gpus:2", other("low", "WEIGHT=gpus:2"))
def ownership_of_gpus(site: QueueSite) -> None:
    site.hosts("h1", gpus=4)
    card = {"gpu": "num=1:j_exclusive=yes"}
    assert len(site.started(*[{"q": "low"} | card] * 4)) == 2, "two are kept for q"
    assert len(site.started(*[{"q": "q"} | card] * 4)) == 2
    queue, low = site.queue, site.cluster.queue_conf["low"]
    assert (queue.weight, queue.gpu_weight, low.weight, low.gpu_weight) == (3, 3, None, 2)
    assert (queue.capability, queue.gpu_capability, queue.guarantee, queue.gpu_guarantee) == (9, 3, 0, 2)


@PROOFS.of("CAPABILITY", "CAPABILITY = 9")
def capability(site: QueueSite) -> None:
    assert len(site.started(*[ANN] * 12)) == 9


@PROOFS.of("REQUEUE_EXIT_VALUES MAX_JOB_REQUEUE", "REQUEUE_EXIT_VALUES = 30 EXCLUDE(40)\nMAX_JOB_REQUEUE = 2")
def requeue_exit_values(site: QueueSite) -> None:
    key, barred, plain = (site.bsub(m=host) for host in ("h1", "h2 h3", "h1"))
    site.turn()
    site.ends(plain, 41)
    assert site.state(plain) == "EXIT"
    for _ in range(2):
        site.ends(key, 30)
        assert site.state(key) == "PEND"
        site.turn(120)
    site.ends(key, 30)
    assert site.state(key) == "EXIT", "MAX_JOB_REQUEUE times only"
    (before,) = site.hosts_of(barred)
    site.ends(barred, 40)
    site.turn(120)
    assert list(site.hosts_of(barred)) == [host for host in ("h2", "h3") if host != before], "never again on that host"


@PROOFS.of("REQUEUE_EXIT_VALUES", "REQUEUE_EXIT_VALUES = all ~3")
def requeue_on_all_values_but_one(site: QueueSite) -> None:
    keys = [site.bsub(), site.bsub()]
    site.turn()
    site.ends(keys[0], 17)
    site.ends(keys[1], 3)
    assert [site.state(key) for key in keys] == ["PEND", "EXIT"]


@PROOFS.of("SUCCESS_EXIT_VALUES", "SUCCESS_EXIT_VALUES = 7 9")
def success_exit_values(site: QueueSite) -> None:
    keys = [site.bsub() for _ in range(3)]
    site.turn()
    for key, status in zip(keys, (7, 8, 9), strict=True):
        site.ends(key, status)
    assert [site.state(key) for key in keys] == ["DONE", "EXIT", "DONE"]


@PROOFS.of(
    "LOCAL_MAX_PREEXEC_RETRY",
    "PRE_EXEC = /bin/false\nLOCAL_MAX_PREEXEC_RETRY = 1",
    other("ends", "PRE_EXEC = /bin/false\nLOCAL_MAX_PREEXEC_RETRY = 1\nLOCAL_MAX_PREEXEC_RETRY_ACTION = EXIT"),
)
def local_max_preexec_retry(site: QueueSite) -> None:
    keys = [site.bsub(q="q"), site.bsub(q="ends")]
    for _ in range(2):
        site.turn(600, runs=False)
        for key in keys:
            site.fails(key, "pre_exec")
    assert [site.state(key) for key in keys] == ["PSUSP", "EXIT"]


PROOFS["LOCAL_MAX_PREEXEC_RETRY_ACTION"] = PROOFS["local_max_preexec_retry"]._replace(
    parameters=("LOCAL_MAX_PREEXEC_RETRY_ACTION",)
)


@PROOFS.of("MIG", "MIG = 5\nRERUNNABLE = Y\nSTOP_COND = select[ut>0.9]", other("stays", "STOP_COND = select[ut>0.9]\nMIG = 5"))
def mig(site: QueueSite) -> None:
    goes, stays = site.bsub(q="q", m="h1 h2"), site.bsub(q="stays", m="h1")
    site.turn()
    (host,) = site.hosts_of(goes)
    site.load("h1", it=0.0, ut=0.95)
    site.load(host, it=0.0, ut=0.95)
    for _ in range(3):
        site.turn(30)
    assert (site.state(goes), site.state(stays)) == ("SSUSP", "SSUSP")
    site.later(site.cluster.jobs.rows[goes].since + 290 - site.now)
    assert migrations(site.cluster, site.now).events == []
    site.later(20)
    (requested,) = migrations(site.cluster, site.now).events
    assert isinstance(requested, ev.SignalRequested)
    assert (requested.key, requested.pending.kind) == (goes, "migrate"), "the other one can start nowhere else"


@PROOFS.of("JOB_WARNING_ACTION JOB_ACTION_WARNING_TIME", "JOB_WARNING_ACTION = URG\nJOB_ACTION_WARNING_TIME = 2")
def job_warning(site: QueueSite) -> None:
    def warning(**options: str) -> tuple[str, int]:
        found = run_settings(site.cluster, site.spec_of(**options), text_settings(site.text), "h1")
        return found.warn_action, found.warn_before

    assert warning() == ("URG", 120)
    assert warning(wa="INT", wt="5") == ("INT", 300)


@PROOFS.of("JOB_OVERRUN JOB_UNDERRUN JOB_IDLE", "JOB_OVERRUN = 60\nJOB_UNDERRUN = 1\nJOB_IDLE = 0.1")
def job_exceptions(site: QueueSite) -> None:
    view = View(site.cluster, site.soft, lambda: QueryCluster().store, master="h1", lsf={})
    key = site.bsub()
    site.turn()
    assert queuefacts.job_exceptions(site.job(key), view, site.now + 59) == []
    assert queuefacts.job_exceptions(site.job(key), view, site.now + 3601) == ["overrun", "idle"]
    site.later(30)
    site.ends(key)
    assert queuefacts.job_exceptions(site.cluster.finished[key], view, site.now) == ["underrun"]
