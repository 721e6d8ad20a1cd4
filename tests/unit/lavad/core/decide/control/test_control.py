"""bkill, bstop, bresume, brequeue, bmig: what they do to a job in each state, to arrays, and whom they obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from config.model.queue import QueueConfig
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import control
from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.events import JobFinished
from lavad.core.lang.asks import Caller, Checkpoint, Kill, Migrate, Refused, Requeue, Resume, Select, Stop
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import JobState, TermReason
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ADMIN, ALICE, BOB, ROOT, Bench

FINISHED, UNKNOWN = "Job has already finished", "No matching job found"
STATES = ["PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN"]


def ids(*texts: object) -> Select:
    return Select(ids=[str(text) for text in texts])


@pytest.mark.parametrize(
    ("state", "after"),
    [("PEND", None), ("PSUSP", None), ("RUN", "RUN"), ("USUSP", "USUSP"), ("SSUSP", "SSUSP"), ("UNKWN", "ZOMBI")],
)
def test_bkill_in_each_state(bench: Bench, state: str, after: str | None) -> None:
    key = bench.placed(state)
    assert bench.asked(control.kill, Kill(jobs=ids(key))) == [(str(key), "")]
    if after is None:
        assert bench.finished(key).state is JobState.EXIT
        assert bench.outcome(key).reason is TermReason.TERM_OWNER
        assert bench.asked(control.kill, Kill(jobs=ids(key))) == [(str(key), FINISHED)]
    else:
        assert bench.job(key).state.name == after
        assert [pending.kind for pending in bench.run(key).pending_signals] == ["kill"]


@pytest.mark.parametrize("state", ["RUN", "USUSP", "UNKWN"])
def test_bkill_twice_is_one_kill(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    for _ in range(2):
        assert bench.asked(control.kill, Kill(jobs=ids(key))) == [(str(key), "")]
    assert [pending.kind for pending in bench.run(key).pending_signals] == ["kill"]


@pytest.mark.parametrize("state", ["RUN", "USUSP", "UNKWN", "SSUSP"])
def test_bkill_r_forgets_a_job_at_once(bench: Bench, state: str) -> None:
    key = bench.placed(state)
    assert bench.asked(control.kill, Kill(jobs=ids(key), now=True)) == [(str(key), "")]
    assert bench.outcome(key).reason is TermReason.TERM_FORCE_OWNER
    assert not bench.cluster.jobs.rows


@pytest.mark.parametrize(("who", "forgotten"), [(ALICE, False), (ADMIN, True), (ROOT, True)])
def test_bkill_r_may_be_the_administrators(bench: Bench, who: Caller, forgotten: bool) -> None:
    """PRIVILEGED_USER_FORCE_BKILL: others kill as without -r."""
    bench.configure(params=Params(privileged_user_force_bkill=True))
    key = bench.placed("RUN")
    assert bench.asked(control.kill, Kill(jobs=ids(key), now=True), caller=who) == [(str(key), "")]
    assert (not bench.cluster.jobs.rows) is forgotten
    if not forgotten:
        assert [pending.kind for pending in bench.run(key).pending_signals] == ["kill"]


@pytest.mark.parametrize("signal", [10, 12, 20])
@pytest.mark.parametrize("state", ["PEND", "PSUSP"])
def test_a_signal_needs_a_started_job(bench: Bench, state: str, signal: int) -> None:
    key = bench.placed(state)
    assert bench.asked(control.kill, Kill(jobs=ids(key), signal=signal)) == [(str(key), "Job has not started yet")]
    assert bench.job(key).state.name == state


@pytest.mark.parametrize("signal", [-1, 65, 10**9, 2**40])
def test_a_signal_that_is_none(bench: Bench, signal: int) -> None:
    key = bench.placed()
    with pytest.raises(Refused, match="Illegal signal value"):
        control.kill(bench.cluster, Kill(jobs=ids(key), signal=signal), ALICE, bench.now)


@pytest.mark.parametrize(
    ("state", "stopped", "resumed"),
    [
        ("PEND", "PSUSP", "PEND"),
        ("PSUSP", "PSUSP", "PEND"),
        ("RUN", "USUSP", "RUN"),
        ("USUSP", "USUSP", "RUN"),
        ("SSUSP", "USUSP", "RUN"),
        ("UNKWN", "UNKWN", "UNKWN"),
    ],
)
def test_bstop_and_bresume_in_each_state(bench: Bench, state: str, stopped: str, resumed: str) -> None:
    key = bench.placed(state)
    for _ in range(2):
        assert bench.asked(control.stop, Stop(jobs=ids(key))) == [(str(key), "")]
        assert bench.job(key).state.name == stopped
    for _ in range(2):
        assert bench.asked(control.resume, Resume(jobs=ids(key))) == [(str(key), "")]
        assert bench.job(key).state.name == resumed


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("PEND", "Job has not started yet"),
        ("PSUSP", "Job has not started yet"),
        ("RUN", ""),
        ("USUSP", ""),
        ("SSUSP", ""),
        ("UNKWN", "Job is not in the wanted state (UNKWN)"),
    ],
)
def test_brequeue_in_each_state(bench: Bench, state: str, why: str) -> None:
    key = bench.placed(state)
    assert bench.asked(control.requeue, Requeue(jobs=ids(key))) == [(str(key), why)]


@pytest.mark.parametrize(("hold", "state"), [(False, "PEND"), (True, "PSUSP")])
def test_a_requeued_job_waits_again_when_it_has_ended(bench: Bench, hold: bool, state: str) -> None:
    key = bench.placed()
    bench.asked(control.requeue, Requeue(jobs=ids(key), hold=hold))
    assert bench.ended(key, "h1", status=9) == ["JobRequeued"]
    assert bench.job(key).state.name == state
    assert bench.job(key).run is None


@pytest.mark.parametrize("ask", [Requeue(jobs=ids(1)), Migrate(jobs=ids(1))])
def test_a_job_that_was_done_before_brequeue_or_bmig_came_to_it_is_done(bench: Bench, ask: Requeue | Migrate) -> None:
    key = bench.placed(rerunnable=True)
    bench.asked(control.requeue if isinstance(ask, Requeue) else control.migrate, ask)
    assert bench.ended(key, "h1", status=0) == ["JobFinished"]
    assert bench.finished(key).state is JobState.DONE


@pytest.mark.parametrize("names", [["FOO"], ["RUN", "run"], [""]])
def test_brequeue_of_no_state(bench: Bench, names: list[str]) -> None:
    key = bench.placed()
    with pytest.raises(Refused, match="Unknown job state"):
        control.requeue(bench.cluster, Requeue(jobs=ids(key), states=names), ALICE, bench.now)


@pytest.mark.parametrize(
    ("state", "rerunnable", "why"),
    [
        ("PEND", True, "Job has not started yet"),
        ("RUN", False, "Job is not checkpointable or rerunnable"),
        ("RUN", True, ""),
        ("USUSP", True, ""),
        ("UNKWN", True, ""),
    ],
)
def test_bmig_in_each_state(bench: Bench, state: str, rerunnable: bool, why: str) -> None:
    key = bench.placed(state, rerunnable=rerunnable)
    assert bench.asked(control.migrate, Migrate(jobs=ids(key))) == [(str(key), why)]


@pytest.mark.parametrize(("never", "why"), [(False, ""), (True, "Job is not checkpointable or rerunnable")])
def test_bmig_of_a_job_in_a_rerunnable_queue(bench: Bench, never: bool, why: str) -> None:
    """With bsub -rn it does not run twice."""
    bench.queues(QueueConfig(name="normal", rerunnable=True))
    key = bench.placed(never_rerun=never)
    assert bench.asked(control.migrate, Migrate(jobs=ids(key))) == [(str(key), why)]


def test_a_migrated_job_prefers_other_hosts(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    host = bench.run(key).parts[0].host
    bench.asked(control.migrate, Migrate(jobs=ids(key)))
    assert bench.run(key).pending_signals[0].notice == 300, "its warning comes first"
    bench.ended(key, host, status=9)
    assert bench.job(key).avoid == (host,)
    assert host not in bench.step()[key]


def test_a_migrated_job_comes_back_where_there_is_no_other_host(bench: Bench) -> None:
    for host in ("h2", "h3"):
        bench.host_switch(host, closed=True)
    key = bench.placed(rerunnable=True)
    bench.asked(control.migrate, Migrate(jobs=ids(key)))
    bench.ended(key, "h1", status=9)
    assert bench.step() == {}
    bench.now = max(bench.wake_at, bench.now + 1)
    assert bench.step() == {key: {"h1": 1}}


def test_bmig_to_a_host_that_is_not_there(bench: Bench) -> None:
    key = bench.placed(rerunnable=True)
    for word, text in (("nosuch", "nosuch: Bad host name"), ("h1+x", r"h1\+x: Bad host name")):
        with pytest.raises(Refused, match=text):
            control.migrate(bench.cluster, Migrate(jobs=ids(key), hosts=[word]), ALICE, bench.now)


def test_bmig_to_a_group_of_hosts(bench: Bench) -> None:
    bench.configure(host_groups=(("rack", ("h2", "h3")),))
    key = bench.placed(rerunnable=True)
    assert bench.asked(control.migrate, Migrate(jobs=ids(key), hosts=["rack"])) == [(str(key), "")]
    assert bench.cluster.specs.rows[bench.job(key).spec].hosts == ("rack",)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("verb", ["kill", "stop", "resume", "requeue", "migrate"])
@pytest.mark.parametrize(("caller", "may"), [(BOB, False), (ADMIN, True), (ROOT, True)])
def test_rights(bench: Bench, state: str, verb: str, caller: Caller, may: bool) -> None:
    key = bench.placed(state, rerunnable=True)
    before = bench.job(key)
    asks = {"kill": Kill, "stop": Stop, "resume": Resume, "requeue": Requeue, "migrate": Migrate}
    [(_, why)] = bench.asked(getattr(control, verb), asks[verb](jobs=ids(key)), caller)
    assert (why == "User permission denied") is not may
    if not may:
        assert bench.job(key) == before


@pytest.mark.parametrize(("text", "why"), [("99", UNKNOWN), ("1[9]", UNKNOWN), ("2[1]", UNKNOWN), ("2147483646", UNKNOWN)])
def test_ids_that_name_nothing(bench: Bench, text: str, why: str) -> None:
    bench.submit(array="1-4")
    bench.submit()
    assert bench.asked(control.kill, Kill(jobs=ids(text))) == [(text, why)]


@pytest.mark.parametrize("text", ["x", "1[", "1[0]", "0[1]", "-1", "1.5", "", "1[2-1]", "99999999999"])
def test_ids_that_are_none(bench: Bench, text: str) -> None:
    bench.submit(array="1-4")
    with pytest.raises(Refused, match="Illegal job ID"):
        control.kill(bench.cluster, Kill(jobs=ids(text)), ALICE, bench.now)


@pytest.mark.parametrize("verb", ["kill", "stop"])
@pytest.mark.parametrize("texts", [(1, 1), ("1[2]", 1), (1, "1[2]"), ("1[2]", "1[2]"), (0, 1), (1, 0), ("1[1-3]", "1[2-4]")])
def test_a_job_named_twice_is_taken_once(bench: Bench, verb: str, texts: tuple[object, ...]) -> None:
    """Such a command must never bring the master down."""
    bench.submit(array="1-4")
    bench.cluster.arrays.rows[1]
    answer = bench.asked(getattr(control, verb), (Kill if verb == "kill" else Stop)(jobs=ids(*texts)))
    assert [why for _, why in answer] == [""] * len(answer)


def test_a_plain_job_named_twice(bench: Bench) -> None:
    key = bench.placed("PEND")
    assert bench.asked(control.kill, Kill(jobs=ids(key, key, 0))) == [(str(key), "")]


def test_an_array_whole_and_by_element(bench: Bench) -> None:
    bench.submit(array="1-6")
    bench.asked(control.stop, Stop(jobs=ids("1[2-3]")))
    assert bench.cluster.arrays.rows[1].held.text() == "2-3"
    bench.asked(control.kill, Kill(jobs=ids("1[3,5]")))
    array = bench.cluster.arrays.rows[1]
    assert (array.pending.text(), array.held.text(), array.exited) == ("1,4,6", "2", 2)
    bench.step()
    assert bench.asked(control.kill, Kill(jobs=ids("1"))) == [("1", "")]
    started = [job for job in bench.cluster.jobs.rows.values() if job.run is not None]
    assert [pending.kind for job in started for pending in bench.run(job.key).pending_signals] == ["kill"] * 3
    assert bench.cluster.arrays.rows[1].exited == 3
    assert bench.asked(control.kill, Kill(jobs=ids("1[5]"))) == [("1[5]", FINISHED)]


def test_id_0_is_all_of_the_callers_own(bench: Bench) -> None:
    mine = [bench.submit(), bench.submit()]
    bench.submit(user="bob")
    answer = bench.asked(control.stop, Stop(jobs=ids(0)))
    assert sorted(int(text) for text, _ in answer) == mine
    assert bench.job(3).state is JobState.PEND


def test_id_0_of_an_administrator_is_their_own_and_all_with_u(bench: Bench) -> None:
    bench.submit()
    bench.submit(user="boss")
    assert [text for text, _ in bench.asked(control.stop, Stop(jobs=ids(0)), ADMIN)] == ["2"]
    every = bench.asked(control.stop, Stop(jobs=Select(ids=["0"], user="all")), ADMIN)
    assert sorted(text for text, _ in every) == ["1", "2"]


def test_u_never_means_the_callers_own_jobs(bench: Bench) -> None:
    """``bkill -u bob 0`` of alice must leave alice's jobs alone."""
    bench.submit()
    bench.submit(user="bob")
    assert bench.asked(control.kill, Kill(jobs=Select(ids=["0"], user="bob"))) == [("2", "User permission denied")]
    assert sorted(bench.cluster.jobs.rows) == [1, 2]


@pytest.mark.parametrize(
    ("filters", "taken"),
    [({"name": "a*"}, ["3"]), ({"name": "b"}, ["2"]), ({"queue": "night"}, ["4"]), ({"name": "nosuch"}, [])],
)
def test_filters_without_an_id_mean_the_job_submitted_last(bench: Bench, filters: dict[str, Any], taken: list[str]) -> None:
    bench.submit(name="a1")
    bench.submit(name="b")
    bench.submit(name="a2")
    bench.submit(name="c", queue="night")
    assert [text for text, _ in bench.asked(control.stop, Stop(jobs=Select(**filters)))] == taken


@pytest.mark.parametrize(
    ("filters", "taken"),
    [
        ({"name": "a*"}, ["1", "3"]),
        ({"queue": "night"}, ["4"]),
        ({}, ["1", "2", "3", "4"]),
        ({"user": "alice"}, ["1", "2", "3", "4"]),
    ],
)
def test_filters_with_id_0_mean_all(bench: Bench, filters: dict[str, Any], taken: list[str]) -> None:
    bench.submit(name="a1")
    bench.submit(name="b")
    bench.submit(name="a2")
    bench.submit(name="c", queue="night")
    answer = bench.asked(control.stop, Stop(jobs=Select(ids=["0"], **filters)))
    assert sorted(text for text, _ in answer) == taken


def test_m_is_what_runs_there(bench: Bench) -> None:
    key = bench.placed()
    bench.placed("PEND")
    host = bench.run(key).parts[0].host
    assert bench.asked(control.stop, Stop(jobs=Select(ids=["0"], host=host))) == [(str(key), "")]


@pytest.mark.parametrize("group", ["one", "outer", "every"])
def test_m_is_also_what_runs_in_a_group_or_in_groups_of_it(bench: Bench, group: str) -> None:
    key = bench.placed()
    host = bench.run(key).parts[0].host
    bench.configure(host_groups=(("one", (host,)), ("outer", ("inner", "one")), ("inner", ("h9",)), ("every", ("all",))))
    assert bench.asked(control.stop, Stop(jobs=Select(ids=["0"], host=group))) == [(str(key), "")]
    assert bench.asked(control.stop, Stop(jobs=Select(ids=["0"], host="inner"))) == []


@pytest.mark.parametrize(
    ("group", "taken"), [("ug", ["2", "3"]), ("outer", ["2", "3"]), ("every", ["1", "2", "3"]), ("but", ["1", "3"]), ("none", [])]
)
def test_u_is_also_a_group_of_users(bench: Bench, group: str, taken: list[str]) -> None:
    groups = (("ug", ("bob", "carol")), ("outer", ("ug", "dave")), ("every", ("all",)), ("but", ("all", "~bob")), ("none", ()))
    bench.configure(user_groups=groups)
    for user in ("alice", "bob", "carol"):
        bench.submit(user=user)
    ask = Stop(jobs=Select(ids=["0"], user=group))
    assert sorted(text for text, _ in bench.asked(control.stop, ask, ADMIN)) == taken


@pytest.mark.parametrize(("filters", "text"), [({"queue": "x"}, "x: No such queue"), ({"host": "x"}, "x: Bad host name")])
def test_filters_that_name_nothing(bench: Bench, filters: dict[str, str], text: str) -> None:
    with pytest.raises(Refused, match=text):
        control.stop(bench.cluster, Stop(jobs=Select(ids=["0"], **filters)), ALICE, bench.now)


def test_bchkpnt_needs_a_checkpointable_job(bench: Bench) -> None:
    key = bench.placed()
    assert bench.asked(checkpoint, Checkpoint(jobs=ids(key))) == [(str(key), "Job is not checkpointable")]


def test_bchkpnt_once_at_a_time(bench: Bench) -> None:
    key = bench.bsub(k="/ckpt 5")["job"]
    assert bench.asked(checkpoint, Checkpoint(jobs=ids(key))) == [(str(key), "Job has not started yet")]
    bench.step()
    host = bench.run(key).parts[0].host
    bench.start(key, host)
    assert bench.asked(checkpoint, Checkpoint(jobs=ids(key))) == [(str(key), "")]
    [(_, why)] = bench.asked(checkpoint, Checkpoint(jobs=ids(key)))
    assert "under way already" in why
    assert bench.said("granted", key, host, 1, True, "") == ["SignalHandled"]
    assert bench.asked(checkpoint, Checkpoint(jobs=ids(key))) == [(str(key), "")]
    assert key_of(key) == key


def test_reasons_are_kept(bench: Bench) -> None:
    key, waits = bench.placed("RUN"), bench.placed("PEND")
    bench.asked(control.stop, Stop(jobs=ids(key, waits), reason="too loud"))
    assert [bench.job(one).remarks for one in (key, waits)] == [("too loud", "")] * 2
    bench.asked(control.resume, Resume(jobs=ids(key, waits), reason="quiet now"))
    assert [bench.job(one).remarks for one in (key, waits)] == [("too loud", "quiet now")] * 2
    bench.asked(control.kill, Kill(jobs=ids(key), reason="no use"))
    run = bench.job(key).run
    assert run is not None
    assert run.pending_signals[-1].said == "no use"
    events = control.kill(bench.cluster, Kill(jobs=ids(waits), reason="no use"), ALICE, bench.now).events
    assert [event.why for event in events if isinstance(event, JobFinished)] == ["no use"]


@pytest.mark.parametrize("reason", ["x" * 4096, "a\nb", "\x1b[2J"])
def test_a_reason_is_one_line(bench: Bench, reason: str) -> None:
    key = bench.placed("RUN")
    verbs: tuple[tuple[Callable[..., Decided], Callable[..., object]], ...] = (
        (control.stop, Stop),
        (control.resume, Resume),
        (control.requeue, Requeue),
        (control.kill, Kill),
    )
    for verb, ask in verbs:
        with pytest.raises(Refused, match="one line of at most 4095 characters"):
            verb(bench.cluster, ask(jobs=ids(key), reason=reason), ALICE, bench.now)
