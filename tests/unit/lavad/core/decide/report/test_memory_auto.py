"""-M auto: a job that reaches its memory limit starts again with twice of it, and the next one begins with what was learnt."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control import control
from lavad.core.decide.submit.alike import Alike
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.memory import KEPT, Learnt, learn, limit_for, program_of
from lavad.core.lang.asks import Kill, Refused, Select, Submit
from lavad.core.lang.job_names import name_of_command
from lavad.core.lang.states import JobState, TermReason
from tests.support.worlds.bench import ALICE, LOCAL, Bench

GB = 1024**2
KILLED = int(signal.SIGKILL)
MEMLIMIT = TermReason.TERM_MEMLIMIT


@pytest.fixture
def large(bench: Bench) -> Bench:
    """h1 has 4 GB, h2 and h3 have 16."""
    for host, gb in (("h1", 4), ("h2", 16), ("h3", 16)):
        facts = replace(bench.cluster.hosts.rows[host].facts, max_mem=gb * 1024)
        bench.apply(ev.HostJoined(at=bench.now, host=host, facts=facts))
    return bench


def running(bench: Bench, command: str = "/opt/solve big.dat", **options: Any) -> int:
    key: int = bench.bsub(command=command, **{"M": "auto", **options})["job"]
    return go_on(bench, key)


def go_on(bench: Bench, key: int) -> int:
    bench.now += 1000
    bench.step()
    bench.start(key, host_of(bench, key))
    return key


def host_of(bench: Bench, key: int) -> str:
    return bench.run(key).parts[0].host


def dies(bench: Bench, key: int, **fields: Any) -> list[str]:
    return bench.ended(key, host_of(bench, key), KILLED, limit=MEMLIMIT, **fields)


def limit(bench: Bench, key: int) -> int | None:
    return bench.cluster.spec_of(key).limits.mem


def test_it_starts_again_with_twice_the_limit_up_to_the_largest_host(large: Bench) -> None:
    key = running(large)
    for gb in (1, 2, 4, 8):
        assert limit(large, key) == gb * GB
        assert dies(large, key) == ["MemoryLearnt", "SpecAdded", "JobRequeued"]
        assert large.job(key).attempt == {1: 1, 2: 2, 4: 3, 8: 4}[gb]
        go_on(large, key)
    assert limit(large, key) == 16 * GB
    assert host_of(large, key) != "h1", "it goes where its limit fits"
    assert dies(large, key) == ["MemoryLearnt", "JobFinished"]
    outcome = large.outcome(key)
    assert (outcome.reason, large.finished(key).state) == (MEMLIMIT, JobState.EXIT)
    assert outcome.why == "it reached its memory limit of 16 GB, and does not start again: the most that it may have"


def test_a_checkpointable_one_goes_on_from_its_newest_generation(large: Bench) -> None:
    key = running(large, k="/ckpt")
    large.said("checkpointed", key, host_of(large, key), 3)
    dies(large, key)
    assert large.job(key).checkpoint == 3
    go_on(large, key)
    assert (limit(large, key), large.run(key).checkpoint) == (2 * GB, 3)


def test_what_was_needed_is_where_the_next_begins(large: Bench) -> None:
    key = running(large)
    dies(large, key)
    go_on(large, key)
    assert large.ended(key, host_of(large, key), 0, max_mem=1500 * 1024) == ["MemoryLearnt", "JobFinished"]
    answer = large.bsub(command="solve other.dat", M="auto")
    assert answer["notices"] == ["Memory limit 2 GB: what solve has needed"], "the second attempt's limit was learnt, too"
    assert limit(large, answer["job"]) == 2 * GB
    assert large.bsub(command="other", M="3G auto")["notices"] == ["Memory limit 3 GB: nothing is known of what it needs"]
    bob = replace(large.cluster.specs.rows[large.job(answer["job"]).spec], user="bob")
    assert bob.user not in large.cluster.learnt.rows


def test_the_most_of_the_site_and_of_the_queue_count(large: Bench) -> None:
    params = replace(large.cluster.conf.params, lava_memory_max=3 * GB, lava_memory_first=2 * GB)
    large.apply(ev.Configured(at=large.now, conf=replace(large.cluster.conf, params=params)))
    key = running(large)
    assert limit(large, key) == 2 * GB
    dies(large, key)
    assert limit(large, go_on(large, key)) == 3 * GB
    assert dies(large, key) == ["MemoryLearnt", "JobFinished"]
    assert limit(large, running(large)) == 3 * GB, "no more than the most is begun with"


def test_submissions_of_one_request_begin_each_with_what_its_program_needs(large: Bench) -> None:
    key = running(large)
    dies(large, key)
    go_on(large, key)
    alike: Alike = {}
    asks = [Submit(command=command, options={"M": "auto"}) for command in ("solve", "other", "solve")]
    answers = [large.take(submit(large.cluster, Given(ask, ALICE, large.now, LOCAL, alike=alike))) for ask in asks]
    assert [limit(large, answer["job"]) for answer in answers] == [2 * GB, GB, 2 * GB]
    assert [len(answer["notices"]) for answer in answers] == [1, 1, 1]


def test_one_that_is_never_to_run_again_only_teaches(large: Bench) -> None:
    key = running(large, rn=True)
    assert dies(large, key) == ["MemoryLearnt", "JobFinished"]
    assert large.outcome(key).why.endswith("does not start again: not rerunnable")
    assert limit(large, running(large, rn=True)) == 2 * GB


def test_one_that_was_killed_or_failed_teaches_nothing(large: Bench) -> None:
    key = running(large)
    large.asked(control.kill, Kill(jobs=Select(ids=[str(key)])))
    assert dies(large, key) == ["JobFinished"]
    key = running(large)
    assert large.ended(key, host_of(large, key), 1 << 8, max_mem=9 * GB) == ["JobFinished"]
    key = running(large)
    assert large.ended(key, host_of(large, key), KILLED) == ["JobFinished"], "the kernel's, without a limit"
    assert not large.cluster.learnt.rows


def test_a_plain_limit_ends_a_job(large: Bench) -> None:
    key = running(large, M="1G", r=True)
    assert dies(large, key) == ["JobFinished"]


@pytest.mark.parametrize("command", ["python -c 'import a\na.run()'", "sh -c '\nx 3\n'\n", "\nsh -c 'x'"])
def test_a_program_of_several_lines_is_known_again(command: str) -> None:
    """A job without a name is called by its command, on one line."""
    assert program_of("", command) == program_of("", name_of_command(command))


def test_a_program_is_known_by_what_runs() -> None:
    assert program_of("", "/opt/bin/solve -x 3") == "solve"
    assert program_of("", "/usr/bin/python3 -u -c 'a = 1'") == "python3 -u -c 'a = 1'"
    assert program_of("p", "sh -c 'x 2'") != program_of("p", "sh -c 'x 3'") != "p:sh"
    assert program_of("", "bash job.sh -c 3") == "job.sh"
    assert program_of("", "python -c 'import a; a.one()'") != program_of("", "python -c 'import a; a.two()'")
    assert program_of("", "./solve.sh -c 3") == "solve.sh"
    assert program_of("", "bash -e /home/a/job.sh") == "job.sh"
    assert program_of("", "perl -ne 'print'") == "perl -ne 'print'"
    assert program_of("", "python3.11 -u /home/a/train.py --lr 1") == "train.py"
    assert program_of("", "exec env A=1 nice mpirun -n 4 ./heat") == "heat"
    assert program_of("cfd", "sweep_17") == program_of("cfd", "sweep_9[3]") == "cfd:sweep"
    assert program_of("", "#!/bin/sh;#BSUB -M auto;cd;./run 1") == "cd"
    assert program_of("", "#!/bin/sh") == "sh"
    assert program_of("", "123") == "123"
    assert program_of("", "") == ""


def test_what_is_learnt_is_bounded_and_old_needs_are_forgotten() -> None:
    known: Learnt | None = None
    for number in range(KEPT + 5):
        known = learn(known, "ann", f"p{number}", GB)
    assert known is not None
    assert len(known.needs) == KEPT
    assert known.limit("p4") is None
    for used in (9 * GB, *[GB] * 4):
        known = learn(known, "ann", "p", used)
    assert known.limit("p") == 9 * GB
    assert learn(known, "ann", "p", GB).limit("p") == GB
    assert limit_for(1000) == 64 * 1024
    assert limit_for(GB) == 1280 * 1024


@pytest.mark.parametrize(
    ("value", "said"),
    [("autos", "autos: Bad MEMLIMIT"), ("x auto", "Bad MEMLIMIT"), ("auto 3", "auto 3: Bad MEMLIMIT"), ("auto auto", "Bad MEM")],
)
def test_what_is_no_limit(bench: Bench, value: str, said: str) -> None:
    with pytest.raises(Refused, match=said):
        bench.bsub(M=value)
