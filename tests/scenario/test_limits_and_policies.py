"""Limits beside other policies: jobs on several hosts, preemption, slot reservations, growth, and slots one by one (GANG=N)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad.core.job.spec import Role
from lavad.core.plan.plan import Plan
from lavad.core.site.pend_reason import LIMIT_SLOTS, PendReason
from tests.scenario.queue_proofs import other
from tests.scenario.queue_site import QueueSite

HIGH = "PRIORITY = 50\nPREEMPTION = PREEMPTIVE[low]"
LOW = other("low", "PRIORITY = 10")
REQUEUED = other("low", "PRIORITY = 10\nJOB_CONTROLS = SUSPEND[brequeue]")
LARGE = "PRIORITY = 50\nSLOT_RESERVE = MAX_RESERVE_TIME[5]"


def site_of(folder: Path, limit: str, lines: str = "", others: str = "") -> QueueSite:
    """Queue ``q`` with these lines, and one limit, of three hosts of 4 slots and 16 GB."""
    site = QueueSite(folder, lines, others, lsb__resources=f"Begin Limit\nNAME = one\n{limit}\nEnd Limit\n" if limit else "")
    assert site.problems == []
    return site


def fill(site: QueueSite) -> None:
    """Jobs of the low queue on all slots."""
    for _ in range(12):
        site.bsub(q="low")
    site.turn()


def cycle(site: QueueSite, seconds: float = 1) -> Plan:
    """So much later one cycle, accepted; the dispatched jobs run."""
    site.later(seconds)
    plan = site.schedule()
    site.accept(plan)
    site.soft.why.update(plan.why)
    site.soft.why_job = plan.why_job
    for placement in plan.placements:
        run = site.job(placement.key).run
        if run is None:
            continue
        for part in run.parts:
            site.hear("started", placement.key, run.uid, part.host, 77, site.now, "/")
    return plan


@pytest.mark.parametrize(
    ("limit", "job", "expected"),
    [
        ("HOSTS=h1 h2\nSLOTS=2", {"n": "5"}, {"h1": 2, "h3": 3}),
        ("HOSTS=h1 h2\nSLOTS=2", {"n": "1,8"}, {"h1": 2, "h3": 4}),
        ("HOSTS=h1 h2\nSLOTS=3", {"n": "4", "R": "span[ptile=2]"}, {"h1": 2, "h3": 2}),
        ("HOSTS=h1 h2\nSLOTS=2", {"n": "6", "R": "2*{} + 4*{}"}, {"h1": 2, "h3": 4}),
        ("HOSTS=h1 h2\nMEM=1000", {"n": "2", "R": "rusage[mem=1000] span[ptile=1]"}, {"h1": 1, "h3": 1}),
        ("HOSTS=h1 h2\nMEM=1000", {"n": "4", "R": "rusage[mem=500/task] span[ptile=2]"}, {"h1": 2, "h3": 2}),
        ("MEM=2000", {"n": "1,4", "R": "rusage[mem=1000/task]"}, {"h1": 2}),
        ("MEM=2000", {"n": "1,4", "R": "rusage[mem=1000/task] span[hosts=1]"}, {"h1": 2}),
        ("PER_HOST=all\nSLOTS=2", {"n": "4", "R": "2*{} + 2*{}"}, {"h1": 2, "h2": 2}),
    ],
)
def test_a_job_on_several_hosts_starts_where_a_limit_leaves_it_room(
    limit: str, job: dict[str, str], expected: dict[str, int], tmp_path: Path
) -> None:
    site = site_of(tmp_path, limit)
    key = site.bsub(**job)
    site.turn()
    assert site.running().get(key) == expected


def test_a_job_that_no_choice_of_hosts_suits_is_told_the_limit(tmp_path: Path) -> None:
    site = site_of(tmp_path, "HOSTS=h1 h2\nSLOTS=2")
    key = site.bsub(n="7")
    site.turn()
    assert site.why(key) == [(LIMIT_SLOTS, 0)]


def test_a_running_job_grows_as_far_as_a_limit_over_hosts_lets_it(tmp_path: Path) -> None:
    site = site_of(tmp_path, "HOSTS=h1 h2\nSLOTS=3")
    first, other_ = site.bsub(n="3", m="h1"), site.bsub(n="3", m="h3")
    site.turn()
    key = site.bsub(n="1,8", ar=True, m="h1 h2 h3")
    site.turn()
    assert site.hosts_of(key) == {"h3": 1}
    site.finish(first)
    site.finish(other_)
    grown = cycle(site).growths[0]
    assert sum(part.slots for part in grown.parts if part.host != "h3") == 3


@pytest.mark.parametrize("limit", ["PER_HOST=all\nJOBS=1", "HOSTS=h2\nJOBS=1"])
def test_a_job_that_grows_is_a_job_more_on_its_new_hosts(limit: str, tmp_path: Path) -> None:
    site = site_of(tmp_path, limit)
    site.bsub(m="h2")
    key = site.bsub(n="1,8", ar=True, m="h1 h2")
    site.turn()
    assert cycle(site).growths == ()
    assert site.hosts_of(key) == {"h1": 4}


@pytest.mark.parametrize("limit", ["QUEUES=q\nSLOTS=1", "QUEUES=q\nJOBS=1", "QUEUES=q\nMEM=100"])
def test_what_is_held_for_jobs_counts_against_limits(limit: str, tmp_path: Path) -> None:
    site = site_of(tmp_path, limit, HIGH, REQUEUED)
    low = [site.bsub(q="low") for _ in range(12)]
    site.turn()
    first, second = (site.bsub(R="rusage[mem=100]", P=name) for name in ("one", "two"))
    assert [one.beneficiary for one in cycle(site).preemptions] == [first]
    site.finish(low[5])
    plan = cycle(site)
    assert (plan.preemptions, [one.key for one in plan.placements]) == ((), [])
    assert plan.why_job[first] == PendReason.SLOTS_HELD, "that its own place fills the limit is not why it waits"
    assert site.why(second)[0][0] >= LIMIT_SLOTS


def test_elements_for_which_slots_are_held_count_as_running_ones(tmp_path: Path) -> None:
    site = site_of(tmp_path, "", HIGH, REQUEUED)
    fill(site)
    site.bsub(J="a[1-4]%1")
    assert [len(cycle(site).preemptions) for _ in range(3)] == [1, 0, 0]


@pytest.mark.parametrize("limit", ["PER_HOST=all\nSLOTS=4", "HOSTS=h1 h2 h3\nSLOTS=12", "PER_HOST=all\nSLOTS_PER_PROCESSOR=1"])
def test_the_slots_of_preempted_jobs_do_not_count_on_hosts(limit: str, tmp_path: Path) -> None:
    site = site_of(tmp_path, limit, HIGH, LOW)
    fill(site)
    key = site.bsub()
    assert len(cycle(site).preemptions) == 1
    assert site.state(key) == "RUN"


def test_a_preempted_job_goes_on_when_the_limit_of_its_host_has_room(tmp_path: Path) -> None:
    site = site_of(tmp_path, "PER_HOST=all\nSLOTS=2", HIGH, LOW)
    low = [site.bsub(q="low") for _ in range(6)]
    site.turn()
    high = site.bsub()
    (victim,) = cycle(site).preemptions
    assert victim.key in low
    site.bsub(q="low")
    assert cycle(site).resumes == (), "the host has slots, the limit has not"
    site.finish(high)
    plan = cycle(site)
    assert (plan.resumes, plan.placements) == ((victim.key,), ())


@pytest.mark.parametrize("limit", ["JOBS=12", "PER_HOST=all\nJOBS=4", "PER_USER=all\nJOBS=12"])
def test_a_limit_on_jobs_does_not_keep_a_job_from_preempting_one_in_it(limit: str, tmp_path: Path) -> None:
    site = site_of(tmp_path, limit, HIGH, LOW)
    fill(site)
    first = site.bsub()
    assert len(cycle(site).preemptions) == 1
    assert site.state(first) == "RUN"
    late = site.bsub(q="low")
    site.finish(first)
    assert len(cycle(site).resumes) == 1
    assert site.state(late) == "PEND"


@pytest.mark.parametrize("options", [{"R": "rusage[mem=1000]"}, {"m": "h2"}, {"n": "8"}])
def test_a_job_that_a_limit_on_jobs_alone_keeps_from_free_hosts_preempts_one_elsewhere(
    options: dict[str, str], tmp_path: Path
) -> None:
    site = site_of(tmp_path, "JOBS=2", HIGH, LOW)
    low = [site.bsub(q="low", n="1", m="h1", R="rusage[mem=8000]") for _ in range(2)]
    site.turn()
    key = site.bsub(**options)
    assert [one.key in low for one in cycle(site).preemptions] == [True]
    assert site.state(key) == "RUN"


def test_a_limit_on_the_jobs_of_a_queue_holds_for_its_preempting_jobs(tmp_path: Path) -> None:
    site = site_of(tmp_path, "QUEUES=q\nJOBS=1", HIGH, LOW)
    fill(site)
    first, second = site.bsub(), site.bsub()
    assert len(cycle(site).preemptions) == 1
    assert cycle(site).preemptions == ()
    assert [site.state(key) for key in (first, second)] == ["RUN", "PEND"]


@pytest.mark.parametrize(
    ("limit", "lines", "memory"),
    [
        ("PER_HOST=all\nSLOTS=4", "", 1),
        ("HOSTS=h1 h2 h3\nSLOTS=12", "", 1),
        ("PER_HOST=all\nJOBS=1", "", 1),
        ("HOSTS=h1 h2 h3\nMEM=15000", "", 5000),
        ("PER_HOST=all\nMEM=8000", "", 5000),
        ("", "HJOB_LIMIT = 4", 1),
        ("", "PJOB_LIMIT = 1", 1),
    ],
)
def test_slots_are_reserved_for_when_jobs_that_fill_a_limit_are_over(limit: str, lines: str, memory: int, tmp_path: Path) -> None:
    site = site_of(tmp_path, limit, f"{LARGE}\n{lines}", other("small", "PRIORITY = 10\nBACKFILL = Y"))
    needs = f"rusage[mem={memory}]"
    for minutes in ("10", "20", "30"):
        site.bsub(n="4", W=minutes, R=needs)
    assert len(site.turn()) == 3
    large = site.bsub(n="8", W="20", R=needs)
    (promise,) = cycle(site).promises.items()
    assert promise[0] == large
    assert promise[1].start == site.now - 1 + 20 * 60
    assert sum(slots for _, slots in promise[1].hosts) == 8


def test_jobs_that_get_slots_one_by_one_keep_within_limits(tmp_path: Path) -> None:
    site = site_of(tmp_path, "PER_HOST=all\nSLOTS=2", "GANG = N\nQJOB_LIMIT = 4")
    key = site.bsub(n="3", J="a[1-4]")
    (hold,) = cycle(site).holds
    assert (hold.key & 0xFFFFFFFF, [part.slots for part in hold.parts]) == (key, [2, 1])
    assert [one.key for one in cycle(site).placements] == [hold.key]
    assert cycle(site).holds == ()


def test_a_job_that_gets_slots_one_by_one_keeps_its_gpus_for_the_next_slots(tmp_path: Path) -> None:
    site = site_of(tmp_path, "", "GANG = N", LOW)
    site.hosts("h1", gpus=1)
    first, second = site.bsub(q="low", m="h1", n="2"), site.bsub(q="low", m="h1", n="1")
    site.turn()
    key = site.bsub(n="4", m="h1", gpu="num=1")
    for over, slots in ((0, 1), (first, 3), (second, 4)):
        if over:
            site.finish(over)
        cycle(site)
        assert [(part.slots, len(part.gpus)) for part in site.job(key).promised] == [(slots, 1)]
    cycle(site)
    assert site.state(key) == "RUN"


def test_tasks_of_roles_go_where_a_limit_on_memory_leaves_room(tmp_path: Path) -> None:
    site = site_of(tmp_path, "PER_HOST=all\nMEM=2000")
    site.bsub(m="h1", R="rusage[mem=1500]")
    site.turn()
    roles = (Role(name="worker", count=2, least=2, resreq="rusage[mem=1000]"),)
    key = site.submit(user="ann", roles=roles, slots=2, max_slots=2, launch="roles")
    assert site.turn(runs=False) == [key]
    assert site.hosts_of(key) == {"h2": 2}


def test_a_job_that_gets_slots_one_by_one_reserves_once_on_a_host_and_counts_in_its_array(tmp_path: Path) -> None:
    site = site_of(tmp_path, "JOBS=2", "GANG = N")
    site.bsub(n="2", J="a[1-4]%1", R="rusage[mem=1000]")
    (hold,) = cycle(site).holds
    assert [(part.slots, part.reserved) for part in hold.parts] == [(2, (("mem", 1000.0),))]
    assert [one.key for one in cycle(site).placements] == [hold.key]
    assert cycle(site).holds == ()


def test_a_job_that_grows_on_its_hosts_leaves_a_limit_on_jobs_as_it_is(tmp_path: Path) -> None:
    site = site_of(tmp_path, "HOSTS=h1 h2\nJOBS=2", "PRIORITY = 50", LOW)
    small = site.bsub(n="3", m="h1")
    site.turn()
    key = site.bsub(n="1,4", ar=True, m="h1")
    site.turn()
    site.finish(small)
    late = site.bsub(q="low", m="h2")
    plan = cycle(site)
    assert ([one.key for one in plan.growths], site.state(late)) == ([key], "RUN")


def test_jobs_suspended_before_do_not_keep_another_from_preempting_by_a_limit_on_jobs(tmp_path: Path) -> None:
    site = site_of(tmp_path, "JOBS=12", HIGH, LOW)
    fill(site)
    highs = []
    for _ in range(2):
        highs.append(site.bsub())
        assert len(cycle(site).preemptions) == 1
    for left, high in enumerate(reversed(highs)):
        site.finish(high)
        assert len(cycle(site).resumes) == 1
        assert sum(job.state.name == "RUN" for job in map(site.job, site.running())) == 12, left


def test_what_a_preempted_job_leaves_of_a_limit_is_given_to_nobody_in_that_cycle(tmp_path: Path) -> None:
    site = site_of(tmp_path, "PER_HOST=all\nSLOTS=2", HIGH, LOW)
    for host in ("h1", "h2", "h3"):
        site.bsub(q="low", n="2", m=host)
    site.turn()
    late, high = site.bsub(q="low"), site.bsub()
    plan = cycle(site)
    assert ([one.key for one in plan.placements], site.state(late)) == ([high], "PEND")
