"""lsb.queues, parameter by parameter: who may use a queue, how much its jobs get, and what they are when they say nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.guarantees import Amount, Pool, ServiceClass
from lavad.core.decide.control.hosts import silent
from lavad.core.lang.asks import Caller
from lavad.core.site.pend_reason import LOAD
from lavad.core.site.pend_reason import PendReason as R
from lavad.core.site.rights import is_queue_admin
from lavad.hosts.leases import Leases
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.scenario.queue_proofs import Proofs, other
from tests.scenario.queue_site import QueueSite

PROOFS = Proofs()
ANN, BOB, EVE = {"user": "ann"}, {"user": "bob"}, {"user": "eve"}


@pytest.mark.parametrize("name", PROOFS)
def test_parameter(name: str, tmp_path: Path) -> None:
    PROOFS.play(name, tmp_path)


@PROOFS.of("PRIORITY", "PRIORITY = 40", other("low", "PRIORITY = 39"))
def priority(site: QueueSite) -> None:
    assert site.started(*[{"q": "low"}] * 10, *[{"q": "q"}] * 10) == [0, 1, *range(10, 20)]


@PROOFS.of("USERS", "USERS = dev eve")
def users(site: QueueSite) -> None:
    assert [site.refused(user=user) for user in ("ann", "bob", "eve", "boss")] == ["", "", "", ""]
    assert site.refused(user="kim") == "q: User cannot use the queue"


@PROOFS.of("USERS", "USERS = all ~dev")
def users_but_a_group(site: QueueSite) -> None:
    assert [bool(site.refused(user=user)) for user in ("ann", "bob", "eve")] == [True, True, False]


@PROOFS.of("ADMINISTRATORS", "ADMINISTRATORS = dev kim")
def administrators(site: QueueSite) -> None:
    who = {user: Caller(user=user, uid=1000, host="h1") for user in ("ann", "kim", "eve")}
    assert [is_queue_admin(site.cluster.conf, "q", who[user]) for user in who] == [True, True, False]


@PROOFS.of("CONTAINER", "CONTAINER = podman[image(a)]")
def container(site: QueueSite) -> None:
    assert site.refused(a="container(b)").startswith("queue q says in which container its jobs run")
    assert site.refused(a="venv(/v)") == ""


@PROOFS.of("HOSTS", "HOSTS = h2+2 h1+1")
def hosts_in_order(site: QueueSite) -> None:
    keys = [site.bsub() for _ in range(9)]
    site.turn()
    assert [next(iter(site.hosts_of(key))) for key in keys[:8]] == ["h2"] * 4 + ["h1"] * 4
    site.turn()
    assert (R.HOST_QUE_MEMB, 1) in site.why(keys[8]), "h3 is not the queue's"


@PROOFS.of("HOSTS", "HOSTS = rack+1 others")
def hosts_a_group_and_others(site: QueueSite) -> None:
    key = site.bsub(n="10")
    site.turn()
    assert list(site.hosts_of(key).values()) == [4, 4, 2]
    assert list(site.hosts_of(key))[2] == "h1", "the group comes first"


@PROOFS.of("HOSTS", "HOSTS = all ~h1")
def hosts_but_one(site: QueueSite) -> None:
    assert len(site.started(*[ANN] * 12)) == 8
    assert site.refused(m="h1") == "h1: Host or host group is not used by the queue"


@PROOFS.of("QJOB_LIMIT", "QJOB_LIMIT = 3")
def qjob_limit(site: QueueSite) -> None:
    assert site.started(ANN, BOB, EVE, ANN, {"n": "2"}) == [0, 1, 2]
    assert site.refused(n="4") == "Queue does not have enough per-user job slots"


@PROOFS.of("UJOB_LIMIT", "UJOB_LIMIT = 2")
def ujob_limit(site: QueueSite) -> None:
    assert site.started(ANN, ANN, ANN, BOB, BOB, BOB) == [0, 1, 3, 4]


@PROOFS.of("SLA_GUARANTEES_IGNORE", "SLA_GUARANTEES_IGNORE = Y", other("low"))
def sla_guarantees_ignore(site: QueueSite) -> None:
    kept = Pool(name="p", type="slots", distribution=(("gold", Amount(5)),))
    site.configure(service_classes=(ServiceClass(name="gold"),), pools=(kept,))
    assert len(site.started(*[{"q": "low"}] * 12)) == 7, "five are kept for a class"
    assert len(site.started(*[{"q": "q"}] * 12)) == 5


@PROOFS.of("PJOB_LIMIT", "PJOB_LIMIT = 0.5")
def pjob_limit(site: QueueSite) -> None:
    assert len(site.started(*[ANN] * 12)) == 6, "two on each host of four processors"


@PROOFS.of("HJOB_LIMIT", "HJOB_LIMIT = 1")
def hjob_limit(site: QueueSite) -> None:
    assert len(site.started(*[ANN] * 12)) == 3


@PROOFS.of("TASKLIMIT", "TASKLIMIT = 2 3 4")
def tasklimit(site: QueueSite) -> None:
    assert (site.spec_of().slots, site.spec_of(n="2").slots, site.spec_of(n="4").slots) == (3, 2, 4)
    assert site.refused(n="5") == "Too many processors requested"
    assert site.refused(n="1") in ("", "Too few processors requested")


@PROOFS.of("TASKLIMIT", "PROCLIMIT = 4")
def proclimit_is_its_older_name(site: QueueSite) -> None:
    assert (site.spec_of().slots, site.refused(n="5")) == (1, "Too many processors requested")


@PROOFS.of("HOSTLIMIT_PER_JOB", "HOSTLIMIT_PER_JOB = 2")
def hostlimit_per_job(site: QueueSite) -> None:
    key = site.bsub(n="9")
    assert site.started({"n": "8"}) == [0]
    assert site.why(key) == [(R.QUE_NO_SPAN, 0)], "nine slots are there, on three hosts"


@PROOFS.of("HOSTLIMIT_PER_JOB", "HOSTLIMIT_PER_JOB = 2")
def hostlimit_per_job_takes_the_hosts_with_most_room(site: QueueSite) -> None:
    site.started({"m": "h1"}, {"m": "h1"}, {"m": "h1"})
    key = site.bsub(n="6")
    site.turn()
    assert sorted(site.hosts_of(key)) == ["h2", "h3"]


SIZES = {
    "MEMLIMIT": ("mem", "M"),
    "SWAPLIMIT": ("swap", "v"),
    "FILELIMIT": ("file", "F"),
    "DATALIMIT": ("data", "D"),
    "STACKLIMIT": ("stack", "S"),
    "CORELIMIT": ("core", "C"),
    "PROCESSLIMIT": ("processes", "p"),
    "THREADLIMIT": ("threads", "T"),
}


@pytest.mark.parametrize("name", SIZES)
def test_limits_have_a_default_and_a_maximum(name: str, tmp_path: Path) -> None:
    field, option = SIZES[name]
    site = QueueSite(tmp_path, f"{name} = 50 80")
    assert site.problems == []
    assert (getattr(site.spec_of().limits, field), getattr(site.spec_of(**{option: "70"}).limits, field)) == (50, 70)
    assert site.refused(**{option: "90"}) == f"{name}: Cannot exceed queue's hard limit(s)"


@pytest.mark.parametrize("name", SIZES)
def test_a_maximum_alone_is_also_what_a_job_gets(name: str, tmp_path: Path) -> None:
    field, _ = SIZES[name]
    assert getattr(QueueSite(tmp_path, f"{name} = 80").spec_of().limits, field) == 80


@PROOFS.of("RUNLIMIT", "RUNLIMIT = 10 1:00")
def runlimit(site: QueueSite) -> None:
    assert (site.spec_of().limits.run, site.spec_of(W="30").limits.run) == (600, 1800)
    assert site.refused(W="61") == "RUNLIMIT: Cannot exceed queue's hard limit(s)"


@PROOFS.of("CPULIMIT", "CPULIMIT = 10 1:00")
def cpulimit(site: QueueSite) -> None:
    assert (site.spec_of().limits.cpu, site.spec_of(c="30").limits.cpu) == (600, 1800)
    assert site.refused(c="61") == "CPULIMIT: Cannot exceed queue's hard limit(s)"


@PROOFS.of("DEFAULT_HOST_SPEC", "DEFAULT_HOST_SPEC = h2")
def default_host_spec(site: QueueSite) -> None:
    assert (site.spec_of(W="10").run_host, site.spec_of(W="10/h3").run_host) == ("h2", "h3")


@PROOFS.of("RES_REQ", "RES_REQ = select[mem>8000] rusage[mem=6000] span[hosts=1]")
def res_req(site: QueueSite) -> None:
    site.load("h1", mem=5000.0)
    assert len(site.started(*[ANN] * 6)) == 4, "two on each of h2 and h3"


@PROOFS.of("RES_REQ", "RES_REQ = order[-mem]")
def res_req_order(site: QueueSite) -> None:
    site.load("h3", mem=1000.0)
    key = site.bsub()
    site.turn()
    assert site.hosts_of(key) == {"h3": 1}
    key = site.bsub(R="order[mem]")
    site.turn()
    assert site.hosts_of(key) != {"h3": 1}


@PROOFS.of("GPU_REQ", "GPU_REQ = num=2:mode=exclusive_process")
def gpu_req(site: QueueSite) -> None:
    gpu = site.spec_of().gpu
    assert gpu is not None
    assert (gpu.num, gpu.mode) == (2, "exclusive_process")


@PROOFS.of("R1M MEM", "r1m = 0.7/2.0\nmem = 500/10")
def load_thresholds_for_a_start(site: QueueSite) -> None:
    site.load("h1", r1m=0.8)
    site.load("h2", mem=400.0)
    key = site.bsub(n="5")
    site.turn()
    assert {code // 100 * 100 for code, _ in site.why(key)} & {LOAD // 100 * 100}
    assert site.started({"n": "4"}) == [0]


@PROOFS.of("R1M MEM", "r1m = 0.7/2.0\nmem = 500/10")
def load_thresholds_stop_a_job_and_let_it_go_on(site: QueueSite) -> None:
    key = site.bsub(m="h1")
    site.turn()
    site.load("h1", it=0.0, r1m=2.5)
    site.turn(60)
    assert site.state(key) == "SSUSP"
    site.load("h1", r1m=1.0)
    site.turn(60)
    assert site.state(key) == "SSUSP", "still above loadSched"
    site.load("h1", r1m=0.5)
    site.turn(60)
    assert site.state(key) == "RUN"


@PROOFS.of("STOP_COND RESUME_COND", "STOP_COND = select[ut>0.9]\nRESUME_COND = select[ut<0.2]")
def stop_and_resume_conditions(site: QueueSite) -> None:
    key = site.bsub(m="h1")
    site.turn()
    states = []
    for ut in (0.95, 0.5, 0.1):
        site.load("h1", it=0.0, ut=ut)
        site.turn(60)
        states.append(site.state(key))
    assert states == ["SSUSP", "SSUSP", "RUN"]


@PROOFS.of("TERMINATE_WHEN", "STOP_COND = select[ut>0.9]\nTERMINATE_WHEN = LOAD")
def terminate_when(site: QueueSite) -> None:
    key = site.bsub(m="h1")
    site.turn()
    site.load("h1", it=0.0, ut=0.95)
    site.turn(60)
    run = site.job(key).run
    assert run is not None
    assert [pending.kind for pending in run.pending_signals] == ["kill"]


@PROOFS.of("EXCLUSIVE", "EXCLUSIVE = Y", other("shared"))
def exclusive(site: QueueSite) -> None:
    assert site.refused(q="shared", x=True) == "shared: Queue does not accept EXCLUSIVE jobs"
    assert site.started({"x": True, "m": "h1"}, {"m": "h1"}) == [0]


@PROOFS.of("INTERACTIVE", "INTERACTIVE = ONLY", other("batch", "INTERACTIVE = NO"))
def interactive(site: QueueSite) -> None:
    assert site.refused() == "Queue only accepts interactive jobs"
    assert site.refused(q="batch", I=True) == "Queue does not accept interactive jobs"
    assert site.refused(q="batch") == ""


@PROOFS.of("RERUNNABLE", "RERUNNABLE = yes")
def rerunnable(site: QueueSite) -> None:
    assert (site.spec_of().rerunnable, site.spec_of(rn=True).rerunnable) == (True, False)


@PROOFS.of("CHKPNT", "CHKPNT = /ckpt 30")
def chkpnt(site: QueueSite) -> None:
    own, of_queue = site.spec_of(k="/own").checkpoint, site.spec_of().checkpoint
    assert own is not None
    assert of_queue is not None
    assert (own.folder, of_queue.folder, of_queue.period) == ("/own", "/ckpt", 1800)


@PROOFS.of("CHKPNT_METHOD", "CHKPNT = /ckpt 30\nCHKPNT_METHOD = ours")
def chkpnt_method(site: QueueSite) -> None:
    made = [site.spec_of(**options).checkpoint for options in ({}, {"k": "/own"}, {"k": "/own method=app"})]
    assert [one.method for one in made if one is not None] == ["ours", "ours", "app"]


@pytest.mark.parametrize(("unit", "asked"), [("", "6000"), ("KB", "6000"), ("MB", "6000"), ("GB", "6"), ("", "6G")])
def test_memory_is_in_mb_where_no_unit_is_set(unit: str, asked: str, tmp_path: Path) -> None:
    """Of a job and of a queue alike: KB is the unit of limits only."""
    conf = f"LSF_UNIT_FOR_LIMITS={unit}\n" if unit else ""
    site = QueueSite(tmp_path, f"HOSTS = h1\nRES_REQ = rusage[mem={asked}]", other("own", "HOSTS = h2"), lsf__conf=conf)
    assert len(site.started(*[{"q": "q"}] * 4)) == 2
    assert len(site.started(*[{"q": "own", "R": f"rusage[mem={asked}]"}] * 4)) == 2


@PROOFS.of("LEASE", "LEASE = 90\nLEASE_MARGIN = 50", other("site"))
def lease(site: QueueSite) -> None:
    keys = [site.bsub(q=queue, r=True) for queue in ("q", "site")]
    site.turn()
    leases = Leases(taken_over=0.0)
    for host in {next(iter(site.hosts_of(key))) for key in keys}:
        site.apply(*silent(site.cluster, host, site.now))
    passed = {at: {key for _, found in leases.look(site.cluster, float(at)).expired for key in found} for at in range(700)}
    assert [min(at for at, found in passed.items() if key in found) for key in keys] == [141, 641]


PROOFS["LEASE_MARGIN"] = PROOFS["lease"]._replace(parameters=("LEASE_MARGIN",))


@PROOFS.of("CHUNK_JOB_SIZE", "CHUNK_JOB_SIZE = 3\nHOSTS = h1")
def chunk_job_size(site: QueueSite) -> None:
    site.memory = SchedulerCache(chunks=True)
    site.hosts("h1", slots=2, chunks=True)
    keys = [site.bsub() for _ in range(8)]
    site.turn()
    assert [site.state(key) for key in keys] == ["RUN"] * 2 + ["WAIT"] * 4 + ["PEND"] * 2
