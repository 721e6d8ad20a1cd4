"""What agents say, in every order, late and repeated; and what becomes of a job when its attempt is over."""

from __future__ import annotations

import itertools

import pytest

from config.model.queue import QueueConfig
from config.model.values import RequeueExit
from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.decide.control.hosts import expired, silent
from lavad.core.job.job import End, PendingSignal
from lavad.core.lang.asks import Kill, Migrate, Requeue, Select
from lavad.core.lang.states import JobState, PartState, SignalKind, TermReason
from lavad.core.rules.effects import KillPart, effects_due
from lavad.core.site.pend_reason import PendReason
from tests.support.worlds.bench import Bench


def gang(bench: Bench, rerunnable: bool = False) -> int:
    """A job on two hosts, dispatched."""
    key = bench.submit(slots=8, rerunnable=rerunnable)
    bench.step()
    assert set(bench.running()[key]) == {"h1", "h2"}
    return key


def kills(bench: Bench, key: int) -> list[str]:
    return [effect.host for effect in effects_due(bench.job(key)) if isinstance(effect, KillPart)]


@pytest.mark.parametrize(("status", "state"), [(0, JobState.DONE), (256, JobState.EXIT), (9, JobState.EXIT), (11, JobState.EXIT)])
@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_plain_end(bench: Bench, status: int, state: JobState, started: bool, at_once: bool) -> None:
    key = bench.submit()
    bench.step()
    if started:
        bench.start(key)
    names = bench.ended(key, "h1", status, gone=at_once)
    assert names == (["JobFinished"] if at_once else ["PartEnded"])
    if not at_once:
        assert bench.said("gone", key, "h1") == ["PartGone", "JobFinished"]
    assert bench.finished(key).state is state
    assert bench.outcome(key).status == status
    assert not bench.cluster.use.hosts["h1"].slots


REPORTS = {
    "started": (77, 1.0, "/"),
    "stopped": (True,),
    "granted": (1, True, ""),
    "checkpointed": (3,),
    "ended": (End(status=256), False),
    "gone": (),
    "prepared": ("h1:1",),
    "refused": ("pre_exec", "no"),
}


@pytest.mark.parametrize("what", REPORTS)
def test_reports_of_another_attempt_are_dropped(bench: Bench, what: str) -> None:
    key = bench.placed()
    before = bench.job(key)
    assert bench.said(what, key, "h1", *REPORTS[what], uid="other") == []
    assert bench.said(what, key, "h3", *REPORTS[what]) == []
    assert bench.said(what, 99, "h1", *REPORTS[what], uid="other") == []
    assert bench.job(key) == before


@pytest.mark.parametrize("what", REPORTS)
def test_reports_after_the_end_are_dropped(bench: Bench, what: str) -> None:
    key = bench.placed()
    uid = bench.uid(key)
    bench.ended(key, "h1")
    assert bench.said(what, key, "h1", *REPORTS[what], uid=uid) == []


@pytest.mark.parametrize("order", list(itertools.permutations(["started", "ended", "gone"])))
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("rerunnable", [True, False])
def test_any_order_of_reports_leads_to_one_end(bench: Bench, order: tuple[str, ...], times: int, rerunnable: bool) -> None:
    """Where ``gone`` comes before any end, how it ended is not known: never the end of another run."""
    key = bench.submit(rerunnable=rerunnable)
    bench.step()
    uid = bench.uid(key)
    names: list[str] = []
    for what in order:
        for _ in range(times):
            names += bench.said(what, key, "h1", *REPORTS[what], uid=uid)
    known = order.index("ended") < order.index("gone")
    again = rerunnable and not known
    assert [name for name in names if name in ("JobFinished", "JobRequeued")] == ["JobRequeued" if again else "JobFinished"]
    if not again:
        assert bench.outcome(key).reason is (TermReason.NONE if known else TermReason.TERM_UNKNOWN)


@pytest.mark.parametrize("order", list(itertools.permutations(["h1", "h2"])))
def test_a_gang_goes_when_all_are_prepared(bench: Bench, order: tuple[str, ...]) -> None:
    key = gang(bench)
    assert bench.said("prepared", key, order[0], "a:1") == ["PartPrepared"]
    assert bench.said("prepared", key, order[0], "a:1") == []
    assert bench.said("prepared", key, order[1], "b:1") == ["PartPrepared", "GangReleased"]
    assert {part.state for part in bench.run(key).parts} == {PartState.STARTING}


def test_a_gang_does_not_go_while_a_host_is_silent(bench: Bench) -> None:
    key = gang(bench)
    bench.said("prepared", key, "h1", "a:1")
    bench.take(silent(bench.cluster, "h1", bench.now))
    assert bench.said("prepared", key, "h2", "b:1") == ["PartPrepared"]


@pytest.mark.parametrize("prepared", [(), ("h1",), ("h2",)])
@pytest.mark.parametrize("refuser", ["h1", "h2"])
def test_one_refusal_ends_a_gang_before_it_runs(bench: Bench, prepared: tuple[str, ...], refuser: str) -> None:
    key = gang(bench)
    for host in prepared:
        bench.said("prepared", key, host, "a:1")
    other = "h2" if refuser == "h1" else "h1"
    assert bench.said("refused", key, refuser, "pre_exec", "it failed") == ["PartRefused"]
    assert kills(bench, key) == [other]
    assert bench.said("gone", key, other) == ["PartGone", "JobRequeued"]
    assert bench.job(key).state is JobState.PEND
    assert bench.job(key).not_before > bench.now


@pytest.mark.parametrize("rerunnable", [True, False])
def test_a_refusal_after_go_is_no_second_run(bench: Bench, rerunnable: bool) -> None:
    """Something of the gang has run: only a job that may run again waits again."""
    key = bench.placed(slots=8, rerunnable=rerunnable)
    assert bench.said("refused", key, "h2", "start", "the starter was restarted") == ["PartEnded", "PartGone"]
    assert kills(bench, key) == ["h1"]
    names = bench.ended(key, "h1", 9)
    assert names[-1] == ("JobRequeued" if rerunnable else "JobFinished")


def test_a_part_that_is_done_first_ends_nothing(bench: Bench) -> None:
    """Ranks on one host may be done a moment before the first host's."""
    key = bench.placed(slots=8)
    bench.ended(key, "h2", 0)
    assert kills(bench, key) == []
    assert bench.ended(key, "h1", 0)[-1] == "JobFinished"
    assert bench.finished(key).state is JobState.DONE


def test_a_part_that_fails_ends_the_others(bench: Bench) -> None:
    key = bench.placed(slots=8)
    bench.ended(key, "h2", 256)
    assert kills(bench, key) == ["h1"]
    bench.ended(key, "h1", 9)
    assert bench.finished(key).state is JobState.EXIT


def test_the_first_parts_end_ends_the_others(bench: Bench) -> None:
    key = bench.placed(slots=8)
    bench.ended(key, "h1", 0)
    assert kills(bench, key) == ["h2"]
    bench.ended(key, "h2", 9)
    assert bench.finished(key).state is JobState.DONE


@pytest.mark.parametrize("first", [0, 9, 256])
@pytest.mark.parametrize("before", [True, False])
def test_a_rerunnable_gang_that_loses_a_host_runs_again(bench: Bench, first: int, before: bool) -> None:
    """Whether the rest fails of the loss before it is noticed, or is killed after: unless the first part was well."""
    key = bench.placed(slots=8, rerunnable=True)
    if before:
        bench.ended(key, "h1", first)
    bench.take(silent(bench.cluster, "h2", bench.now))
    bench.take(expired(bench.cluster, "h2", [key], bench.now))
    if not before:
        assert kills(bench, key) == ["h1"]
        bench.ended(key, "h1", first)
    if first:
        assert bench.job(key).state is JobState.PEND
    else:
        assert bench.finished(key).state is JobState.DONE


def test_an_end_that_is_known_stays_when_the_host_is_lost_before_gone(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    bench.ended(key, "h1", 0, gone=False)
    bench.take(silent(bench.cluster, "h1", bench.now))
    bench.take(expired(bench.cluster, "h1", [key], bench.now))
    assert bench.finished(key).state is JobState.DONE


def test_an_end_that_is_known_is_not_made_unknown(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    bench.ended(key, "h1", 768, gone=False)
    assert bench.ended(key, "h1", 0, gone=True, lost="the host was booted") == ["PartGone", "JobFinished"]
    assert bench.outcome(key).status == 768


@pytest.mark.parametrize("rerunnable", [True, False])
def test_what_its_lease_ended_is_lost(bench: Bench, rerunnable: bool) -> None:
    key = bench.placed(rerunnable=rerunnable)
    assert bench.ended(key, "h1", 9, first_reason="lease") == ["JobRequeued" if rerunnable else "JobFinished"]


@pytest.mark.parametrize("code", ["pre_exec", "restart", "start", "stale", "starter"])
def test_a_failed_start_waits_longer_each_time_and_forgets_it_once_started(bench: Bench, code: str) -> None:
    key = bench.submit()
    delays = []
    for failures in range(1, 12):
        [host] = bench.step()[key]
        bench.said("refused", key, host, code, "why")
        assert bench.job(key).failures == failures
        delays.append(bench.job(key).not_before - bench.now)
        assert bench.step() == {}
        bench.now = bench.job(key).not_before
    assert delays == sorted(delays)
    assert delays[0] == 1.0
    assert delays[-1] <= 300.0
    [host] = bench.step()[key]
    bench.start(key, host)
    assert bench.job(key).failures == 0


def test_after_a_failed_start_the_only_host_is_tried_again(bench: Bench) -> None:
    for host in ("h2", "h3"):
        bench.host_switch(host, closed=True)
    key = bench.submit()
    bench.step()
    bench.said("refused", key, "h1", "pre_exec", "no")
    bench.now += 10
    assert bench.step() == {key: {"h1": 1}}


@pytest.mark.parametrize(
    ("text", "code", "again"),
    [
        ("", 3, False),
        ("3", 3, True),
        ("3", 4, False),
        ("1 3", 3, True),
        ("1,3", 1, True),
        ("all", 0, False),
        ("all", 7, True),
        ("all ~7", 7, False),
        ("all ~7", 8, True),
        ("EXCLUDE(5)", 5, True),
        ("137", -9, True),
        ("all ~137", -9, False),
    ],
)
def test_requeue_exit_values(bench: Bench, text: str, code: int, again: bool) -> None:
    rule = RequeueExit.parse(text)
    assert rule.wants(code) is again
    bench.queues(QueueConfig(name="normal", requeue_exit_values=rule))
    key = bench.placed()
    bench.ended(key, "h1", code << 8 if code >= 0 else -code)
    assert (key in bench.cluster.jobs.rows) is again


def test_a_job_that_always_ends_so_starts_ever_later(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", requeue_exit_values=RequeueExit(values=(3,))))
    key = bench.placed()
    delays = []
    for _ in range(12):
        bench.ended(key, "h1", 3 << 8)
        row = bench.cluster.jobs.rows[key]
        delays.append(row.not_before - bench.now)
        assert not (delays[-1] and bench.step())
        bench.now = row.not_before
        assert bench.step() == {key: {"h1": 1}}
    assert delays == [0, 0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_a_killed_job_is_not_requeued_by_its_exit_value(bench: Bench) -> None:
    bench.queues(QueueConfig(name="normal", requeue_exit_values=RequeueExit(all=True)))
    key = bench.placed(rerunnable=True)
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    bench.ended(key, "h1", 15)
    assert bench.outcome(key).reason is TermReason.TERM_OWNER


@pytest.mark.parametrize(("status", "lost", "state"), [(9, "", JobState.DONE), (0, "", JobState.DONE), (9, "x", JobState.EXIT)])
def test_a_job_that_is_killed_as_done_is_done(bench: Bench, status: int, lost: str, state: JobState) -> None:
    """``bkill -d``; of a job that waits there is nothing done."""
    waits = bench.submit(held=True)
    key = bench.placed()
    asked = Kill(jobs=Select(ids=[str(key), str(waits)]), done=True)
    assert bench.asked(control.kill, asked) == [(str(key), ""), (str(waits), control.NOT_STARTED)]
    bench.ended(key, "h1", status, lost=lost)
    outcome = bench.finished(key)
    assert (outcome.state, bench.outcome(key).status) == (state, 0 if state is JobState.DONE else 255 << 8)


def test_a_kill_stands_above_requeue_and_migrate(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    jobs = Select(ids=[str(key)])
    bench.asked(control.requeue, Requeue(jobs=jobs))
    bench.asked(control.migrate, Migrate(jobs=jobs))
    bench.asked(control.kill, Kill(jobs=jobs))
    bench.ended(key, "h1", 9)
    assert bench.finished(key).state is JobState.EXIT


@pytest.mark.parametrize(("hosts", "avoid"), [([], ("h1",)), (["h2"], ("h1",)), (["h1"], ())])
def test_a_migrated_job_avoids_its_host_unless_it_is_named(bench: Bench, hosts: list[str], avoid: tuple[str, ...]) -> None:
    key = bench.placed(rerunnable=True)
    bench.asked(control.migrate, Migrate(jobs=Select(ids=[str(key)]), hosts=hosts))
    bench.ended(key, "h1", 9)
    assert bench.job(key).avoid == avoid


def test_a_job_that_another_took_the_place_of_may_return_to_it(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    pending = PendingSignal(kind=SignalKind.MIGRATE, at=bench.now, by="preemption", reason=TermReason.TERM_PREEMPT)
    bench.apply(ev.SignalRequested(at=bench.now, key=key, pending=pending, beneficiary=bench.submit()))
    bench.ended(key, "h1", 9)
    assert (bench.job(key).reason, bench.job(key).avoid) == (PendReason.JOB_MIG, ())


def test_a_killed_part_that_never_ran_is_only_gone(bench: Bench) -> None:
    key = bench.submit()
    bench.step()
    bench.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    assert bench.said("gone", key, "h1") == ["PartGone", "JobFinished"]
    assert bench.outcome(key).reason is TermReason.TERM_OWNER


def test_a_checkpoint_counts_once_and_is_where_the_next_attempt_begins(bench: Bench) -> None:
    key = bench.bsub(k="/ckpt")["job"]
    bench.step()
    bench.start(key)
    assert bench.said("checkpointed", key, "h1", 2) == ["CheckpointMade"]
    assert bench.said("checkpointed", key, "h1", 2) == []
    assert bench.said("checkpointed", key, "h1", 1) == []
    bench.ended(key, "h1", 0, lost="gone with its host")
    assert bench.job(key).checkpoint == 2
    bench.step()
    assert bench.run(key).checkpoint == 2
