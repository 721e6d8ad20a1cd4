"""Checkpoints of a job on several hosts with disks of their own: all hosts copy the same generation, one at a time."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core.decide.control.checkpoint import checkpoint
from lavad.core.job.checkpoints import Checkpoints, Generation, brought, to_copy
from lavad.core.lang.asks import Checkpoint, Refused, Select
from lavad.core.rules.effects import CopyGeneration, effects_due
from lavad.wire import encode
from proto import agent_pb2 as pb
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.rules.test_copy_hosts import holding

STAGE = {"k": "/own 10 method=app stage=/all", "n": "2", "R": "span[ptile=1]", "m": "h1 h2"}


def running(bench: Bench, **options: str) -> tuple[int, str, str]:
    """A job on two hosts, and these, the first one first."""
    asked: dict[str, Any] = {**STAGE, **options}
    key: int = bench.bsub(**asked)["job"]
    bench.step()
    first, second = (part.host for part in bench.run(key).parts)
    for host in (first, second):
        bench.said("prepared", key, host)
    for host in (first, second):
        bench.start(key, host)
    return key, first, second


def asked(bench: Bench, key: int) -> dict[str, int]:
    """The generation that each host is to copy."""
    return {one.host: one.generation for one in effects_due(bench.job(key)) if isinstance(one, CopyGeneration)}


def made(bench: Bench, key: int, host: str, generation: int) -> None:
    bench.said("checkpointed", key, host, generation, 1.0, 4096)


def staged(bench: Bench, key: int, host: str, generation: int, why: str = "") -> None:
    bench.said("checkpointed", key, host, generation, 1.0, 0 if why else 4096, "", why, None, True)


def test_all_hosts_copy_the_same_one(bench: Bench) -> None:
    key, first, second = running(bench)
    assert asked(bench, key) == {}
    made(bench, key, first, 1)
    assert asked(bench, key) == {first: 1, second: 1}
    made(bench, key, first, 2)
    made(bench, key, first, 3)
    assert asked(bench, key) == {first: 1, second: 1}, "until it is there"
    staged(bench, key, first, 1)
    assert asked(bench, key) == {first: 3, second: 3}, "the newest then"
    staged(bench, key, first, 3)
    assert asked(bench, key) == {first: 3, second: 3}
    made(bench, key, first, 4)
    assert asked(bench, key) == {first: 4, second: 4}
    staged(bench, key, first, 4, "the folder is full")
    assert asked(bench, key) == {first: 4, second: 4}, "they try it again"
    made(bench, key, first, 5)
    staged(bench, key, first, 4, "the folder is full")
    assert asked(bench, key) == {first: 5, second: 5}
    [_, order] = [one for one in effects_due(bench.job(key)) if isinstance(one, CopyGeneration)]
    assert pb.Order.FromString(encode.order(order)).copy_generation == 5


@pytest.mark.parametrize("folder", ["/own 10 method=app stage=/all", "/shared 10 method=app"])
def test_a_job_ends_with_its_checkpoint_when_the_first_host_says_that_it_is_there(bench: Bench, folder: str) -> None:
    key, first, second = running(bench, k=folder)
    bench.asked(checkpoint, Checkpoint(jobs=Select(ids=[str(key)]), kill=True))
    [pending] = bench.run(key).pending_signals
    assert bench.said("granted", key, second, pending.number, True) == []
    assert bench.said("granted", key, first, pending.number, True) == ["SignalHandled", "SignalRequested"]


def test_a_job_on_one_host_and_one_in_a_shared_folder_copy_nothing_so(bench: Bench) -> None:
    key = bench.started(k="/own 10 method=app stage=/all", m="h1")
    made(bench, key, "h1", 1)
    assert asked(bench, key) == {}
    staged(bench, key, "h1", 1)
    assert asked(bench, key) == {}
    key, first, _ = running(bench, k="/shared 10 method=app")
    made(bench, key, first, 1)
    assert asked(bench, key) == {}


def test_an_attempt_begins_with_none(bench: Bench) -> None:
    key, first, second = running(bench)
    made(bench, key, first, 1)
    staged(bench, key, first, 1)
    made(bench, key, first, 2)
    assert asked(bench, key) == {first: 2, second: 2}
    for host in (first, second):
        bench.said("refused", key, host, "checkpoint", "the folder is gone")
    bench.now += 1000
    bench.step()
    assert bench.run(key).number == 2
    assert bench.run(key).copying == -1
    assert bench.run(key).checkpoint == 1, "what was not copied is lost, and its number is used again"
    assert asked(bench, key) == {}
    first, second = (part.host for part in bench.run(key).parts)
    for host in (first, second):
        bench.said("prepared", key, host)
    for host in (first, second):
        bench.start(key, host)
    made(bench, key, first, 2)
    assert asked(bench, key) == {first: 2, second: 2}


def test_the_newest_is_next_once_the_one_that_is_copied_is_there_or_has_failed() -> None:
    known = Checkpoints(generations=(Generation(1, 1.0, 1, staged=9), Generation(2, 2.0, 2), Generation(3, 3.0, 2)))
    assert to_copy(known, 2, -1) == 3
    assert to_copy(known, 2, 2) == 2
    assert to_copy(known, 2, 2, failed=True) == 3
    assert to_copy(known, 2, 1) == 3
    assert to_copy(known, 3, -1) == -1, "what an attempt before made is not copied again"
    assert to_copy(known, 2, 0) == 0, "one that is no longer remembered is still copied"


def test_what_a_job_on_several_hosts_goes_on_from() -> None:
    known = Checkpoints(
        generations=(Generation(1, 1.0, staged=9), Generation(2, 2.0), Generation(3, 3.0, staged=9), Generation(4, 4.0))
    )
    assert [brought(known, newest) for newest in (-1, 1, 2, 3, 4, 9)] == [-1, 1, 1, 3, 3, 9]
    assert brought(Checkpoints(generations=(Generation(4, 4.0),)), 4) == -1


def test_copies_on_other_hosts_are_of_jobs_on_one_host(bench: Bench) -> None:
    holding(bench)
    with pytest.raises(Refused, match=r"^-k: stage: copies on other hosts \(LAVA_CHKPNT_COPY_DIR\) are of jobs on one host"):
        bench.spec_of(**{**STAGE, "k": "/own stage"})
