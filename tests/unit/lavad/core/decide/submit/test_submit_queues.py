"""bsub: the choice of the queue and what it gives, times, names, arrays, job ids, and how many may wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig, UserConfig
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Chkpnt, Interactive, Limits, TaskLimit
from lavad.core import events as ev
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.modify.switch import switch
from lavad.core.job.job import Job
from lavad.core.lang.asks import Caller, OptionValue, Refused, Select, Switch
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from lavad.core.rules.pending import pending_jobs
from lavad.core.rules.run_settings import limits_on
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ADMIN, ALICE, BOB, Bench

Field = Callable[[Any], Any]
"""Of a ``Spec``; a part that may be None is there where it is asked for."""


# -- queues --------------------------------------------------------------------------------------------------------------


def test_the_default_queue_is_said_to_be_it(bench: Bench) -> None:
    assert bench.bsub()["default"] is True
    answer = bench.bsub(q="normal")
    assert (answer["queue"], answer["default"]) == ("normal", False)


@pytest.mark.parametrize(("names", "queue"), [("nosuch night", "night"), ("night normal", "night"), ("normal night", "normal")])
def test_the_first_queue_that_takes_it(bench: Bench, names: str, queue: str) -> None:
    assert bench.bsub(q=names)["queue"] == queue


APPS = (
    ApplicationConfig(name="sized", job_size_list=(8, 16), estimated_runtime=120),
    ApplicationConfig(name="large", tasklimit=TaskLimit(minimum=4, default=4)),
)
QUEUES: list[tuple[dict[str, Any], dict[str, OptionValue], str]] = [
    ({"users": ("bob",)}, {}, "q: User cannot use the queue"),
    ({"users": ("all", "~alice")}, {}, "q: User cannot use the queue"),
    ({}, {"x": True}, "q: Queue does not accept EXCLUSIVE jobs"),
    ({"interactive": Interactive.ONLY}, {}, "Queue only accepts interactive jobs"),
    ({"limits": Limits(run=600)}, {"W": "11"}, "RUNLIMIT: Cannot exceed queue's hard limit(s)"),
    ({"limits": Limits(cpu=600)}, {"c": "11"}, "CPULIMIT: Cannot exceed queue's hard limit(s)"),
    ({"limits": Limits(mem=100)}, {"M": "101"}, "MEMLIMIT: Cannot exceed queue's hard limit(s)"),
    ({"limits": Limits(processes=3)}, {"p": "4"}, "PROCESSLIMIT: Cannot exceed queue's hard limit(s)"),
    ({"tasklimit": TaskLimit(maximum=2)}, {"n": "3"}, "Too many processors requested"),
    ({"tasklimit": TaskLimit(minimum=4)}, {"n": "3"}, "Too few processors requested"),
    ({"job_size_list": (4, 2)}, {"n": "3"}, "Job size is not one of those allowed: 4 2"),
    ({"job_size_list": (4, 2)}, {"n": "2,4"}, "Job size is not one of those allowed: 4 2"),
    ({"job_size_list": (1, 2)}, {"n": "2", "app": "sized"}, "Job size is not one of those allowed: 8 16"),
    ({"job_size_list": (4, 2)}, {"n": "8", "app": "sized"}, "Job size is not one of those allowed: 4 2"),
    ({}, {"n": "1,2", "app": "large"}, "Too few processors requested"),
    ({"qjob_limit": 2}, {"n": "3"}, "Queue does not have enough per-user job slots"),
    ({"ujob_limit": 2}, {"n": "3"}, "Queue does not have enough per-user job slots"),
    ({"hosts": ("h1", "h2")}, {"m": "h3"}, "h3: Host or host group is not used by the queue"),
]


@pytest.mark.parametrize(("fields", "options", "text"), QUEUES, ids=[str(at) for at in range(len(QUEUES))])
def test_a_queue_that_does_not_take_it(bench: Bench, fields: dict[str, Any], options: dict[str, Any], text: str) -> None:
    bench.queues(QueueConfig(name="q", **fields))
    bench.configure(apps=APPS)
    with pytest.raises(Refused) as raised:
        bench.bsub(q="q", **options)
    assert raised.value.text == text


@pytest.mark.parametrize(
    ("words", "missing"), [("every", ""), ("left", ""), ("h3 left", "h3"), ("right", "right"), ("left h9", "h9")]
)
def test_each_group_of_a_list_has_a_host_of_the_queue(bench: Bench, words: str, missing: str) -> None:
    bench.configure(
        host_groups=(("left", ("h1", "h3")), ("right", ("h3", "h9")), ("every", ("all",))), hosts=(HostConfig(name="h9"),)
    )
    bench.queues(QueueConfig(name="q", hosts=("all", "~right")))
    if missing:
        with pytest.raises(Refused, match=f"{missing}: Host or host group is not used by the queue"):
            bench.bsub(q="q", m=words)
    else:
        assert bench.spec_of(q="q", m=words).hosts == tuple(words.split())


def test_sizes_and_estimates_of_a_profile_go_before_those_of_the_queue(bench: Bench) -> None:
    bench.queues(QueueConfig(name="q", job_size_list=(4, 8), estimated_runtime=60))
    bench.configure(apps=APPS)
    asked: list[dict[str, Any]] = [{}, {"app": "sized"}, {"n": "8"}]
    found = [bench.cluster.spec_of(bench.bsub(q="q", **options)["job"]) for options in asked]
    assert [(spec.slots, spec.estimate) for spec in found] == [(4, 60), (8, 120), (8, 60)]


def test_a_job_that_waits_has_the_estimate_of_the_queue_that_it_is_switched_to(bench: Bench) -> None:
    queues = (QueueConfig(name="a", estimated_runtime=60), QueueConfig(name="b", estimated_runtime=120), QueueConfig(name="c"))
    bench.queues(*queues)
    keys = [bench.bsub(q="a")["job"], bench.bsub(q="a", We="3")["job"]]
    for queue, wanted in (("b", [120, 180]), ("c", [0, 180]), ("a", [60, 180])):
        bench.asked(switch, Switch(queue=queue, jobs=Select(ids=[str(key) for key in keys])))
        assert [bench.cluster.spec_of(key).estimate for key in keys] == wanted


def test_a_closed_queue(bench: Bench) -> None:
    bench.queue_switch("night", open=False)
    with pytest.raises(Refused, match="night: Queue has been closed"):
        bench.bsub(q="night")
    assert bench.bsub(q="night normal")["queue"] == "normal"


def test_an_administrator_uses_any_queue(bench: Bench) -> None:
    bench.queues(QueueConfig(name="q", users=("bob",)))
    assert bench.bsub(ADMIN, q="q")["queue"] == "q"
    assert bench.bsub(BOB, q="q")["queue"] == "q"


GIVEN: list[tuple[dict[str, Any], dict[str, OptionValue], Field, Any]] = [
    ({"limits": Limits(run=600)}, {}, lambda s: s.limits.run, 600),
    ({"limits": Limits(run=600), "defaults": Limits(run=60)}, {}, lambda s: s.limits.run, 60),
    ({"limits": Limits(run=600), "defaults": Limits(run=60)}, {"W": "5"}, lambda s: s.limits.run, 300),
    ({"rerunnable": True}, {}, lambda s: s.rerunnable, True),
    ({"rerunnable": True}, {"rn": True}, lambda s: s.rerunnable, False),
    ({"chkpnt": Chkpnt("/c", 1800)}, {}, lambda s: (s.checkpoint.folder, s.checkpoint.period), ("/c", 1800)),
    ({"chkpnt": Chkpnt("/c", 1800)}, {"k": "/mine"}, lambda s: s.checkpoint.folder, "/mine"),
    ({"tasklimit": TaskLimit(default=4)}, {}, lambda s: s.slots, 4),
    ({"tasklimit": TaskLimit(default=4)}, {"n": "2"}, lambda s: s.slots, 2),
    ({"gpu_req": "num=1"}, {}, lambda s: s.gpu.num, 1),
    ({"exclusive": True}, {"x": True}, lambda s: s.exclusive, True),
]


@pytest.mark.parametrize(("fields", "options", "field", "wanted"), GIVEN, ids=[str(at) for at in range(len(GIVEN))])
def test_what_a_queue_gives(bench: Bench, fields: dict[str, Any], options: dict[str, Any], field: Field, wanted: object) -> None:
    bench.queues(QueueConfig(name="q", **fields))
    assert field(bench.spec_of(q="q", **options)) == wanted


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, ("/c", "site")), ({"k": "/mine"}, ("/mine", "site")), ({"k": "/mine method=app"}, ("/mine", "app"))],
)
def test_the_method_of_a_profile_counts_where_the_job_names_none(
    bench: Bench, options: dict[str, OptionValue], wanted: tuple[str, str]
) -> None:
    bench.configure(apps=(ApplicationConfig("a", chkpnt=Chkpnt("/c", method="site")),))
    found = bench.spec_of(app="a", **options).checkpoint
    assert found is not None
    assert (found.folder, found.method) == wanted


@pytest.mark.parametrize(
    ("profile", "options", "wanted"),
    [
        ({"limits": Limits(run=600, cpu=60)}, {}, ("hostA", "hostA", 600)),
        ({"defaults": Limits(run=60)}, {}, ("hostA", "", 60)),
        ({"limits": Limits(run=600)}, {"W": "5/fast"}, ("fast", "", 300)),
        ({"limits": Limits(run=600)}, {"W": "5"}, ("", "", 300)),
        ({"limits": Limits(mem=600)}, {}, ("", "", None)),
    ],
)
def test_time_limits_of_a_profile_are_those_of_its_host(
    bench: Bench, profile: dict[str, Any], options: dict[str, OptionValue], wanted: tuple[str, str, int | None]
) -> None:
    bench.configure(apps=(ApplicationConfig("a", default_host_spec="hostA", **profile),), models=(("fast", 2.0),))
    found = bench.spec_of(app="a", **options)
    assert (found.run_host, found.cpu_host, found.limits.run) == wanted


@pytest.mark.parametrize(
    ("says", "queue", "options", "wanted"),
    [
        (False, True, {}, False),
        (False, True, {"r": True}, True),
        (None, True, {}, True),
        (True, False, {}, True),
        (True, False, {"rn": True}, False),
    ],
)
def test_a_profile_says_before_the_queue_whether_its_jobs_run_again(
    bench: Bench, says: bool | None, queue: bool, options: dict[str, OptionValue], wanted: bool
) -> None:
    bench.queues(QueueConfig(name="q", rerunnable=queue))
    bench.configure(apps=(ApplicationConfig("a", rerunnable=says),))
    assert bench.spec_of(app="a", q="q", **options).rerunnable is wanted


@pytest.mark.parametrize(("given", "wanted"), [("", 50), ("1", 1), ("100", 100)])
def test_user_priority(bench: Bench, given: str, wanted: int) -> None:
    bench.configure(params=Params(max_user_priority=100))
    assert bench.spec_of(**({"sp": given} if given else {})).priority == wanted
    with pytest.raises(Refused, match="Bad user priority"):
        bench.bsub(sp="101")


# -- times ---------------------------------------------------------------------------------------------------------------


def test_what_programs_send_for_other_systems_is_taken_and_told(bench: Bench) -> None:
    notices = bench.bsub(alloc_flags="gpumps smt4")["notices"]
    assert notices == ["option -alloc_flags has no effect: it is for IBM's Cluster Systems Manager"]


def test_a_job_with_a_run_limit_of_zero_has_one_second_on_its_host(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", limits=Limits(run=600), defaults=Limits(run=300)))
    spec = bench.spec_of(W="0")
    assert spec.limits.run == 0
    assert limits_on(bench.cluster, spec, spec.limits, "hosta").run == 1


def test_notices_of_times(bench: Bench) -> None:
    notices = bench.bsub(b="13:00", t="14:00")["notices"]
    assert [notice[:26] for notice in notices] == ["Job will be scheduled afte", "Job will be terminated by "]
    assert notices[0].endswith("Fri Nov 20 13:00:00 2026")


def test_an_end_before_its_beginning(bench: Bench) -> None:
    with pytest.raises(Refused, match="Start time is later than termination time"):
        bench.bsub(b="14:00", t="13:00")


# -- names and arrays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "indices", "limit"), [("a[1-4]", "1-4", 0), ("a[1-9:2]%3", "1-9:2", 3), ("[2,5]", "2,5", 0)])
def test_an_array(bench: Bench, name: str, indices: str, limit: int) -> None:
    job = bench.bsub(J=name)["job"]
    array = bench.cluster.arrays.rows[job]
    assert (array.indices.text(), array.limit, array.spec_text) == (indices, limit, name)
    assert array.pending == array.indices


def test_a_held_array_and_a_held_job(bench: Bench) -> None:
    array = bench.cluster.arrays.rows[bench.bsub(J="a[1-3]", H=True)["job"]]
    assert (array.pending.text(), array.held.text()) == ("", "1-3")
    assert bench.job(bench.bsub(H=True)["job"]).state is JobState.PSUSP


def test_a_blank_name_is_none(bench: Bench) -> None:
    assert bench.job(bench.bsub(command="sleep 1", J="  ")["job"]).name == "sleep 1"


def test_a_job_without_a_name_is_called_by_its_command(bench: Bench) -> None:
    assert bench.job(bench.bsub(command="echo a b")["job"]).name == "echo a b"
    assert bench.job(bench.bsub(command="echo a\necho b\n")["job"]).name == "echo a;echo b"


def test_equal_jobs_are_one_class(bench: Bench) -> None:
    one, other, third = (bench.job(bench.bsub(J=name)["job"]) for name in ("a", "b", "c"))
    assert one.spec == other.spec == third.spec
    assert bench.job(bench.bsub(n="2")["job"]).spec != one.spec


# -- ids and counts ------------------------------------------------------------------------------------------------------


def test_job_ids_wrap_and_pass_over_live_jobs(bench: Bench) -> None:
    bench.configure(params=Params(max_jobid=5))
    jobs = [bench.bsub()["job"] for _ in range(5)]
    assert jobs == [1, 2, 3, 4, 5]
    for key in (2, 4):
        bench.apply(ev.JobFinished(at=bench.now, key=key, state=JobState.EXIT))
    assert [bench.bsub()["job"], bench.bsub(J="a[1-2]")["job"]] == [2, 4]
    with pytest.raises(Refused, match="No job id is free"):
        bench.bsub()


@pytest.mark.parametrize(("array", "left"), [("", 2), ("a[1-2]", 1), ("a[1-3]", 0)])
def test_too_many_pending(bench: Bench, array: str, left: int) -> None:
    bench.configure(params=Params(max_pend_jobs=2))
    options: dict[str, Any] = {"J": array} if array else {}
    for _ in range(left):
        bench.bsub(**options)
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bench.bsub(**options)


@pytest.mark.parametrize(
    "users",
    [
        (("alice", 1), ("default", 9)),
        (("default", 9), ("alice", 1)),
        (("default", 1),),
        (("team@", 1), ("default", 9)),
        (("team@", 9), ("alice", 1)),
    ],
)
def test_too_many_pending_of_a_user(bench: Bench, users: tuple[tuple[str, int], ...]) -> None:
    sections = tuple(UserConfig(name=name, max_pend_slots=most) for name, most in users)
    bench.configure(users=sections, user_groups=(("team", ("alice",)),))
    bench.bsub()
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bench.bsub()


@pytest.mark.parametrize(
    ("jobs", "slots", "taken"),
    [(2, None, [8, 8]), (None, 20, [8, 8, 4]), (4, 20, [8, 8, 4]), (2, 20, [8, 8]), (None, 7, []), (0, None, [])],
)
def test_jobs_and_slots_that_wait_are_limited_apart(bench: Bench, jobs: int | None, slots: int | None, taken: list[int]) -> None:
    bench.configure(users=(UserConfig(name="alice", max_pend_jobs=jobs, max_pend_slots=slots),))
    for each in taken:
        bench.bsub(n=str(each))
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bench.bsub(n="8")


def test_only_jobs_that_wait_count_for_the_jobs_that_may_wait(bench: Bench) -> None:
    bench.hosts("h1", slots=4)
    bench.configure(users=(UserConfig(name="alice", max_pend_jobs=3),))
    bench.bsub(n="4")
    bench.step()
    assert bench.bsub(n="4", J="a[1-2]")
    assert bench.bsub(n="4")
    with pytest.raises(Refused, match="Pending job threshold reached"):
        bench.bsub(n="4")


def test_jobs_that_wait_are_counted_as_they_come_and_go(bench: Bench) -> None:
    """A submit looks at no job before it."""
    first = bench.bsub()["job"]
    array, held = bench.bsub(n="2", J="a[1-4]")["job"], bench.bsub(J="b[1-5]", H=True)["job"]
    counts = [pending_jobs(bench.cluster, "alice")]
    bench.step()
    counts.append(pending_jobs(bench.cluster, "alice"))
    bench.finish(first)
    bench.apply(ev.JobFinished(at=bench.now, key=2 << 32 | array, state=JobState.EXIT))
    counts.append(pending_jobs(bench.cluster, "alice"))
    bench.apply(ev.ElementsKilled(at=bench.now, key=held, elements=Ranges.span(1, 4)))
    counts.append(pending_jobs(bench.cluster, "alice"))
    assert counts == [10, 5, 5, 1]
    check_invariants(bench.cluster)
    bench.cluster.by_user.clear()
    assert pending_jobs(bench.cluster, "alice") == 1


def test_hosts_that_are_only_configured_may_be_named(bench: Bench) -> None:
    bench.configure(hosts=(HostConfig(name="later"),), host_groups=(("grp", ("h1",)),))
    assert bench.spec_of(m="later grp").hosts == ("later", "grp")


def test_what_is_refused_uses_no_id(bench: Bench) -> None:
    with pytest.raises(Refused):
        bench.bsub(q="nosuch")
    assert bench.bsub()["job"] == 1


def test_a_record_is_frozen(bench: Bench) -> None:
    job = bench.job(bench.bsub()["job"])
    assert isinstance(replace(job, name="x"), Job)
    with pytest.raises(AttributeError):
        job.name = "x"  # type: ignore[misc]


@pytest.mark.parametrize("caller", [ALICE, BOB, Caller(user="x" * 255, uid=5, host="")])
def test_the_owner_is_the_caller(bench: Bench, caller: Caller) -> None:
    assert bench.cluster.spec_of(bench.bsub(caller)["job"]).user == caller.user


@pytest.mark.parametrize("own", [{}, {"R": "rusage[mem=5]"}])
def test_a_requirement_of_the_configuration_that_cannot_be_read_is_no_less_of_one(bench: Bench, own: dict[str, Any]) -> None:
    bad = "rusage[mem="
    bench.configure(apps=(ApplicationConfig(name="x", res_req=bad),))
    with pytest.raises(Refused, match=r"RES_REQ of application profile x: .*Bad resource requirement syntax"):
        bench.bsub(app="x", **own)
    bench.configure(queues=tuple(replace(queue, res_req=bad) for queue in bench.cluster.conf.queues))
    with pytest.raises(Refused, match=r"RES_REQ of queue normal: .*Bad resource requirement syntax"):
        bench.bsub(**own)
