"""lava why of jobs that have ended: how, by whom, at which limit, and what to do."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.container import Container
from config.model.queue import ApplicationConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.job.job import End, PendingSignal, TaskEnd
from lavad.core.job.spec import Policy, Role, RoleText
from lavad.core.lang.asks import Caller
from lavad.core.lang.states import SignalKind, TermReason
from tests.support.worlds.query_cluster import QueryCluster, at, element

GB = 1 << 20


def story(c: QueryCluster, word: str = "1", **options: Any) -> str:
    out, err, code = c.ask("why", word, **options)
    assert (err, code) == ("", 0)
    return out


def test_a_memory_limit_is_told_with_the_host_the_peak_and_what_to_ask_for() -> None:
    c = QueryCluster()
    c.submit(1, limits={"mem": 4 * GB})
    c.start(1, hosts="ol1 ol2")
    c.finish(1, status=9, reason=TermReason.TERM_MEMLIMIT, max_mem=int(4.2 * GB), limit=TermReason.TERM_MEMLIMIT)
    assert story(c) == (
        "Job <1>, User <alice>, Queue <normal>: EXIT since Fri Nov 20 11:33:56, after 1 s on ol1, ol2\n"
        "\nHow it ended\n"
        "  TERM_MEMLIMIT: It used more memory on a host than its limit (-M, or MEMLIMIT of its queue).\n"
        "  Killed at its memory limit of 4 GB on ol1; its peak there was 4.2 GB\n"
        "\nWhat to do\n"
        '  bsub -M 6GB -R "rusage[mem=6GB]"\n'
    )


def test_a_run_limit_is_told_with_the_time_that_it_had() -> None:
    c = QueryCluster(abs_runlimit=True)
    c.submit(1, limits={"run": 600})
    c.start(1, "11:20:00")
    c.finish(1, "11:30:00", status=9, reason=TermReason.TERM_RUNLIMIT)
    out = story(c)
    assert "  Killed at its run limit of 10.0 min; it had run 10.0 min\n" in out
    assert "\nWhat to do\n  bsub -W 15; or let it write checkpoints" in out


def test_queues_that_give_more_are_those_that_would_take_the_job() -> None:
    """Not those of others, with too short a limit, closed ones, or its own."""
    c = QueryCluster(abs_runlimit=True)
    site, short, long = c.cluster.conf, Limits(run=700), Limits(run=900)
    limits = {"normal": Limits(run=600), "chkpnt": short, "fair": long}
    queues = tuple(replace(queue, limits=limits.get(queue.name, queue.limits)) for queue in site.queues)
    c.feed(ev.Configured(at=at("11:31:36"), conf=replace(site, queues=queues)))
    c.submit(1, limits={"run": 600})
    c.start(1, "11:20:00")
    c.finish(1, "11:30:00", status=9, reason=TermReason.TERM_RUNLIMIT)
    assert "\n  queue normal gives 10.0 min at most; these give more: fair night\n" in story(c)
    c.feed(ev.QueueSwitched(at=at("11:31:37"), queue="night", open=False, active=True, by="root"))
    assert "\n  queue normal gives 10.0 min at most; these give more: fair\n" in story(c)


@pytest.mark.parametrize(("status", "todo"), [(9, "\nWhat to do\n  ask for more memory (-M, rusage[mem])\n"), (15, "")])
def test_nobody_is_sent_where_he_is(status: int, todo: str) -> None:
    """To ask ``lava why`` is what has just been done."""
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1, status=status)
    out = story(c)
    assert "lava why" not in out
    assert out.partition("\nWhat")[1] + out.partition("\nWhat")[2] == todo


def test_who_killed_it_and_why_are_named() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    asked = PendingSignal(SignalKind.KILL, at("11:33:56"), by="openlava", reason=TermReason.TERM_ADMIN, said="too hot")
    c.feed(ev.SignalRequested(at=at("11:33:56"), key=1, pending=asked))
    c.finish(1, status=2, reason=TermReason.TERM_ADMIN)
    assert "  Killed by openlava at Fri Nov 20 11:33:56: too hot\n" in story(c)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (127 << 8, "Exited with exit code 127: The command, or a library"),
        (126 << 8, "Exited with exit code 126: The command was found, but could not be executed"),
        (11, "Exited by signal 11 (SIGSEGV): It used memory that is not its own"),
        (
            132 << 8,
            "Exited with exit code 132: the program's own, as mpirun has such, or of a shell in which signal 4 (SIGILL) ended",
        ),
        (7 << 8, "Exited with exit code 7: this code is the program's own"),
    ],
)
def test_what_its_exit_code_says(status: int, told: str) -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1, status=status)
    out = story(c)
    assert f"  {told}" in out
    assert "\nWhat to do\n  " in out


def of_role(c: QueryCluster, status: int, why: str, limit: TermReason = TermReason.NONE, **text: Any) -> str:
    """A job with the roles ``chief`` and ``w``, whose task w[0] has ended it."""
    roles = (Role(name="chief"), Role(name="w", count=2, least=2, limits=Limits(mem=GB)))
    described = (RoleText(command="true"), RoleText(command="true", **text))
    c.submit(1, slots=3, max_slots=3, roles=roles, policy=Policy(success="chief"), text={"roles": described})
    c.start(1, hosts="ol2:3", roles=((0, 0, 1), (1, 0, 2)))
    end = End(status=status, at=at("11:33:56"), first_rank=1, first_reason=why, limit=limit)
    c.feed(ev.JobJudged(at=at("11:33:56"), key=1, attempt=1, end=end))
    c.finish(1, status=status, why=why, reason=limit, tasks=(TaskEnd(rank=1, status=status, maxrss=GB * 5 // 4),), max_mem=3 * GB)
    return story(c)


def test_the_name_of_a_role_stays_as_it_is() -> None:
    assert "  w[0] on ol2 ended with exit code 3\n" in of_role(QueryCluster(), 3 << 8, "w[0] on ol2 ended with exit code 3")


def test_a_role_at_its_memory_limit_is_named_with_its_own_peak_and_limit() -> None:
    why = "w[0] on ol2 was killed by signal 9 (TERM_MEMLIMIT)"
    out = of_role(QueryCluster(), 9, why, TermReason.TERM_MEMLIMIT)
    assert "  w[0] was killed at its memory limit of 1 GB on ol2; its peak was 1.2 GB\n" in out
    assert '\nWhat to do\n  give role w more: limits: {M: 1600MB}, and resreq: "rusage[mem=1600MB]"\n' in out
    assert "bsub -M" not in out


@pytest.mark.parametrize(
    ("status", "text", "around"),
    [
        (126 << 8, {"cwd": "/nonexistent"}, "the working folder /nonexistent"),
        (127 << 8, {"software": (("venv", "/nonexistent"),)}, "venv(/nonexistent)"),
    ],
)
def test_what_is_around_a_command_may_be_what_is_missing(status: int, text: dict[str, Any], around: str) -> None:
    out = of_role(QueryCluster(), status, f"w[0] on ol2 ended with exit code {status >> 8}", **text)
    assert f"  Or {around} could not be set up: its output says which, and why\n" in out
    assert f"\nWhat to do\n  read its output; is {around} on each host?\n" in out
    plain = of_role(QueryCluster(), status, f"w[0] on ol2 ended with exit code {status >> 8}")
    assert "could not be set up" not in plain


def test_the_container_of_its_profile_may_be_what_is_missing() -> None:
    c = QueryCluster()
    profile = ApplicationConfig("boxed", container=Container("podman", "site:1"))
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, apps=(profile,))))
    c.submit(1, app="boxed", text={"software": (("modules", "gcc"),)})
    c.start(1)
    c.finish(1, status=127 << 8)
    assert "  Or container(site:1) or modules(gcc) could not be set up: its output says which, and why\n" in story(c)


def test_a_job_that_had_all_memory_of_its_host_is_told_so() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1, status=9, max_mem=23 * GB)
    assert "  It used 23 GB on ol2, which has 23.5 GB in all\n" in story(c)


def test_earlier_attempts_are_told() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.feed(ev.JobRequeued(at=at("11:35:00"), key=1, why="host ol2 was lost"))
    assert "\nIt has run before, and was put back in its queue\n  Fri Nov 20 11:35:00: host ol2 was lost\n" in story(c)
    c.start(1, "11:36:00")
    c.finish(1, "11:37:00", status=1 << 8)
    assert "  Fri Nov 20 11:35:00: host ol2 was lost\n" in story(c)


def test_an_array_is_summed_up_by_ways_to_end() -> None:
    c = QueryCluster()
    c.submit(1, indices="1-4")
    for index, status, reason in (
        (1, 0, TermReason.NONE),
        (2, 256, TermReason.NONE),
        (3, 256, TermReason.NONE),
        (4, 9, TermReason.TERM_OWNER),
    ):
        c.start(element(1, index))
        c.finish(element(1, index), status=status, reason=reason)
    out = story(c)
    assert out.startswith(
        "Array <1>: 4 elements have ended, 1 done, 3 exited\n  2 exit code 1: [2] [3]\n  1 TERM_OWNER: [4]\n\nJob <1[2]>, User"
    )


def test_a_job_that_was_killed_before_it_started() -> None:
    c = QueryCluster()
    c.submit(1)
    c.finish(1, status=9, reason=TermReason.TERM_OWNER, by="alice")
    out = story(c)
    assert ": EXIT since Fri Nov 20 11:33:56, before it started\n" in out
    assert "  Killed by alice at Fri Nov 20 11:33:56\n" in out


def test_who_killed_an_earlier_attempt_is_of_the_past() -> None:
    """A job that was killed, requeued and killed by somebody else was said to be killed by the first."""
    c = QueryCluster()
    c.submit(1)
    waiting = c.cluster.jobs.rows[1]
    c.finish(1, status=9, reason=TermReason.TERM_OWNER, by="alice")
    c.feed(ev.JobRevived(at=at("11:34:10"), key=1, job=waiting))
    c.finish(1, "11:34:20", status=9, reason=TermReason.TERM_ADMIN, by="openlava")
    assert [line for line in story(c).splitlines() if "Killed by" in line] == ["  Killed by openlava at Fri Nov 20 11:34:20"]


def test_nobody_reads_of_jobs_that_bjobs_does_not_show() -> None:
    c = QueryCluster(secure_job_info_level=4)
    c.submit(1)
    c.submit(2)
    c.start(1)
    c.finish(1)
    for word in "12":
        assert (
            c.ask("why", word, caller=Caller(user="bob", uid=1002, host="ol1"))[1]
            == f"Job <{word}> is not found or has finished\n"
        )
        assert c.ask("why", word)[2] == 0


def test_what_a_host_said_is_explained_and_lava_why_is_no_advice_of_its_own() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(
        1, status=256, reason=TermReason.TERM_OTHER, why="Secret NOPE: /home/alice/.lava/secrets/NOPE: No such file or directory"
    )
    assert story(c).endswith("/NOPE: No such file or directory\n\nWhat to do\n  lava secret ls; lava secret set\n")
    c.submit(2)
    c.start(2)
    c.finish(2, status=256, reason=TermReason.TERM_OTHER, why="what nobody has heard of")
    assert story(c, "2").endswith("  What nobody has heard of\n")
