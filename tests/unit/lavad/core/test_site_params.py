"""Parameters of lsb.params, lsb.queues and lsb.applications, each proven by what becomes of a job."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits, RequeueExit, TerminateWhen
from lavad.core import events as ev
from lavad.core.decide.base.groups import add_group, clean_groups, unused_groups
from lavad.core.decide.control.control import kill, resume, stop
from lavad.core.decide.control.messages import post
from lavad.core.decide.modify.position import move
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import AddGroup, Kill, Move, Post, Refused, Resume, Select, Stop, Submit
from lavad.core.lang.states import JobState, TermReason
from lavad.core.rules.cpu_factors import scale
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ADMIN, ALICE, LOCAL, Bench


def site(bench: Bench, **params: object) -> None:
    bench.configure(params=replace(bench.cluster.conf.params, **params))


def spec(bench: Bench, **options: str) -> Spec:
    return bench.spec_of(**options)


def text_of(bench: Bench, **options: str) -> JobText:
    ask = Submit(command="sleep 1", cwd="/home/alice", options=dict(options))
    return submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL)).texts[0][1]


def test_groups_of_a_job_that_names_none(bench: Bench) -> None:
    site(bench, default_jobgroup="/site", default_user_group="staff")
    assert (spec(bench).group, spec(bench).user_group) == ("/site", "staff")
    assert (spec(bench, g="/own").group, spec(bench, G="dev").user_group) == ("/own", "dev")
    assert {"/site", "/own"} <= set(bench.cluster.groups.rows)


def test_folders_of_a_job_that_names_none(bench: Bench) -> None:
    site(bench, default_job_cwd="/scratch/%J", default_job_outdir="/out")
    assert (text_of(bench).cwd, text_of(bench).output_dir) == ("/scratch/%J", "/out")
    assert text_of(bench, cwd="/mine").cwd == "/mine"
    bench.configure(apps=(ApplicationConfig(name="fluid", job_cwd="/fluid"),))
    assert text_of(bench, app="fluid").cwd == "/fluid"


def test_a_relative_folder_of_a_job_that_names_none_is_below_that_of_submission(bench: Bench) -> None:
    site(bench, default_job_cwd="runs/./%J")
    assert text_of(bench).cwd == "/home/alice/runs/%J"
    bench.configure(apps=(ApplicationConfig(name="fluid", job_cwd="%U"),))
    assert (text_of(bench, app="fluid").cwd, text_of(bench, app="fluid").submit_cwd) == ("/home/alice/%U", "/home/alice")


def test_a_time_limit_is_given_for_the_default_host(bench: Bench) -> None:
    site(bench, default_host_spec="h2")
    assert (spec(bench, W="5").run_host, spec(bench).run_host) == ("h2", "")
    bench.queues(QueueConfig(name="normal", default_host_spec="h3"))
    assert (spec(bench, W="5").run_host, spec(bench, W="5/h1").run_host, spec(bench, c="5").cpu_host) == ("h3", "h1", "h3")


def test_limits_are_scaled_from_host_to_host(bench: Bench) -> None:
    bench.configure(models=(("fast", 4.0), ("slow", 1.0)))
    assert scale(bench.cluster, "fast", "slow") == 4.0
    assert scale(bench.cluster, "elsewhere", "slow") == scale(bench.cluster, "fast", "elsewhere") == 1.0
    assert scale(bench.cluster, "", "slow") == scale(bench.cluster, "fast", "fast") == 1.0


@pytest.mark.parametrize(("code", "state"), [(3, "DONE"), (4, "DONE"), (5, "EXIT"), (0, "DONE")])
def test_exit_values_that_mean_success(bench: Bench, code: int, state: str) -> None:
    bench.queues(QueueConfig(name="normal", success_exit_values=(3, 4)))
    key = bench.placed()
    bench.ended(key, "h1", code << 8)
    assert bench.finished(key).state is JobState[state]


def test_an_application_says_what_success_is(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", success_exit_values=(3,)))
    bench.configure(apps=(ApplicationConfig(name="a", success_exit_values=(7,)),))
    own, other = bench.placed(app="a"), bench.placed(app="a")
    bench.ended(own, next(iter(bench.running()[own])), 7 << 8)
    bench.ended(other, next(iter(bench.running()[other])), 3 << 8)
    assert (bench.finished(own).state, bench.finished(other).state) == (JobState.DONE, JobState.EXIT)


def test_an_exit_value_requeues_only_so_often(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", requeue_exit_values=RequeueExit(values=(9,)), max_job_requeue=2))
    key = bench.placed()
    for _ in range(2):
        assert bench.ended(key, "h1", 9 << 8) == ["JobRequeued"]
        bench.later(10)
        bench.step()
        bench.start(key)
    assert bench.ended(key, "h1", 9 << 8) == ["JobFinished"]
    assert bench.finished(key).state is JobState.EXIT


@pytest.mark.parametrize("ends", [False, True])
def test_a_pre_execution_command_is_retried_only_so_often(bench: Bench, ends: bool) -> None:
    bench.queues(QueueConfig(name="normal", local_max_preexec_retry=1, local_max_preexec_retry_action="EXIT" if ends else ""))
    key = bench.submit()
    bench.step()
    assert bench.said("refused", key, "h1", "pre_exec", "exit code 1") == ["PartRefused", "JobRequeued"]
    assert bench.job(key).state is JobState.PEND
    bench.later(600)
    bench.step()
    host = next(iter(bench.running()[key]))
    bench.said("refused", key, host, "pre_exec", "exit code 1")
    assert (bench.finished(key) if ends else bench.job(key)).state is (JobState.EXIT if ends else JobState.PSUSP)


@pytest.mark.parametrize(
    ("most", "action", "state"), [(0, "", "PSUSP"), (0, "EXIT", "EXIT"), (1, "EXIT", "PEND"), (None, "EXIT", "PEND")]
)
def test_a_profile_has_its_own_retries(bench: Bench, most: int | None, action: str, state: str) -> None:
    bench.queues(QueueConfig(name="normal", local_max_preexec_retry=5))
    app = ApplicationConfig("a", local_max_preexec_retry=most, local_max_preexec_retry_action=action)
    bench.configure(apps=(app,))
    key = bench.submit(app="a")
    bench.step()
    bench.said("refused", key, "h1", "pre_exec", "exit code 1")
    assert (bench.finished(key) if state == "EXIT" else bench.job(key)).state is JobState[state]


@pytest.mark.parametrize(
    ("values", "said", "barred"),
    [
        ("3 4", "the pre-execution command exited with code 4: check", True),
        ("3 4", "the pre-execution command exited with code 5: check", False),
        ("all", "the pre-execution command exited with code 5: check", True),
        ("all ~5", "the pre-execution command exited with code 5: check", False),
        ("all", "the pre-execution command was killed by signal 9: check", False),
        ("", "the pre-execution command exited with code 4: check", False),
    ],
)
def test_a_pre_execution_command_may_bar_its_job_from_a_host(bench: Bench, values: str, said: str, barred: bool) -> None:
    site(bench, preexec_exclude_host_exit_values=RequeueExit.parse(values))
    key = bench.submit(hosts=("h1", "h2"))
    for _ in range(2):
        bench.later(600)
        bench.step()
        bench.said("refused", key, next(iter(bench.running()[key])), "pre_exec", said)
    bench.later(600)
    bench.step()
    assert (bench.job(key).state is JobState.PEND) is barred
    assert sorted(bench.job(key).barred) == (["h1", "h2"] if barred else [])


def test_a_host_that_bars_a_job_is_open_to_it_again_after_a_time(bench: Bench) -> None:
    """LSB_EXCLUDE_HOST_PERIOD times MBD_SLEEP_TIME. The job goes to the host again, and is barred anew."""
    site(
        bench,
        preexec_exclude_host_exit_values=RequeueExit.parse("all"),
        lsb_exclude_host_period=20,
        mbd_sleep_time=60,
    )
    key = bench.submit(hosts=("h1",))
    for _ in range(2):
        bench.step()
        bench.said("refused", key, "h1", "pre_exec", "the pre-execution command exited with code 4: check")
        barred = bench.now
        bench.later(600)
        plan = bench.schedule()
        assert (plan.placements, plan.wake_at) == ((), barred + 1200)
        bench.later(601)
        assert bench.job(key).barred_at == (barred,)
    bench.step()
    assert bench.running()[key] == {"h1": 1}


def test_positions_are_for_administrators(bench: Bench) -> None:
    site(bench, job_position_control_by_admin=True)
    job = bench.bsub()["job"]
    with pytest.raises(Refused, match="User permission denied"):
        move(bench.cluster, Move(job=str(job), top=True, place=1), ALICE, bench.now)


def test_numbers_of_messages(bench: Bench) -> None:
    site(bench, max_job_msg_num=4)
    job = bench.bsub()["job"]
    post(bench.cluster, Post(job=str(job), number=3, text="x"), ALICE, bench.now)
    with pytest.raises(Refused, match="0 to 3"):
        post(bench.cluster, Post(job=str(job), number=4, text="x"), ALICE, bench.now)


def pending_signals(bench: Bench, key: int) -> list[tuple[str, TermReason, int]]:
    run = bench.job(key).run
    assert run is not None
    return [(pending.kind, pending.reason, pending.notice) for pending in run.pending_signals]


def test_a_closing_window_ends_jobs_where_the_queue_says_so(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", run_window="8:00-18:00", terminate_when=(TerminateWhen.WINDOW,)))
    key = bench.placed()
    bench.local = (1, 18 * 3600 + 5)
    bench.accept(bench.schedule())
    assert bench.accept(bench.schedule()) == []
    assert pending_signals(bench, key) == [("kill", TermReason.TERM_WINDOW, 300)]


def test_load_ends_jobs_where_the_queue_says_so(bench: Bench) -> None:
    site(bench, lava_warning_max=20)
    bench.queues(QueueConfig(name="normal", stop_cond="select[ut>0.9]", terminate_when=(TerminateWhen.LOAD,)))
    key = bench.placed()
    bench.load("h1", it=0.0, ut=0.95)
    bench.now += Params().sbd_sleep_time
    bench.accept(bench.schedule())
    assert pending_signals(bench, key) == [("kill", TermReason.TERM_LOAD, 20)]


def test_records_of_older_stores_have_the_defaults() -> None:
    assert ev.JobRequeued(at=1.0, key=1).requeues == 0
    assert Params().max_job_msg_num == 128
    assert QueueConfig(name="q").limits == Limits()


def test_a_job_group_that_jobs_made_goes_with_its_last_job(bench: Bench) -> None:
    bench.take(add_group(bench.cluster, AddGroup(group="/own/kept"), ALICE, bench.now))
    job = bench.bsub(g="/made/below")["job"]
    bench.bsub(g="/own/made")
    assert unused_groups(bench.cluster) == []
    bench.asked(kill, Kill(jobs=Select(ids=[str(job)])))
    assert unused_groups(bench.cluster) == ["/made/below", "/made"]
    bench.take(clean_groups(bench.cluster, bench.now))
    assert set(bench.cluster.groups.rows) == {"/own", "/own/kept", "/own/made"}


@pytest.mark.parametrize("enabled", [False, True])
def test_who_resumes_what_an_administrator_suspended(bench: Bench, enabled: bool) -> None:
    site(bench, enable_user_resume=enabled)
    running, waiting, array = bench.placed(), bench.placed("PEND"), bench.submit(array="1-3")
    jobs = Select(ids=[str(key) for key in (running, waiting, array)])
    bench.asked(stop, Stop(jobs=jobs), ADMIN)
    whys = {why for _, why in bench.asked(resume, Resume(jobs=jobs))}
    assert whys == ({""} if enabled else {"User permission denied"})
    assert {why for _, why in bench.asked(resume, Resume(jobs=jobs), ADMIN)} == {""}
    bench.asked(stop, Stop(jobs=jobs))
    assert {why for _, why in bench.asked(resume, Resume(jobs=jobs))} == {""}, "what they suspended themselves"
