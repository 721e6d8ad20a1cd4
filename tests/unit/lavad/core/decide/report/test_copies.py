"""Copies of checkpoints on other hosts: who holds them is decided when the job starts, and again when that host fails."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.hosts import greeted, silent
from lavad.core.decide.report.report import decide_reports
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.checkpoints import holds
from lavad.core.job.job import End
from lavad.core.job.reports import EndedReport
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Refused, Submit
from lavad.core.lang.ids import key_of
from lavad.core.rules.copy_hosts import name_of, unneeded
from lavad.core.rules.effects import CopyTo, effects_due
from lavad.hosts.orders import holders
from lavad.queries.facts import checkpoints as told
from tests.support.worlds.bench import ALICE, LOCAL, Bench
from tests.unit.lavad.core.rules.test_copy_hosts import STAGE, holding


def running(bench: Bench) -> int:
    return bench.started(k=STAGE, m="h1")


def copies_to(bench: Bench, key: int) -> list[str]:
    return [effect.holder for effect in effects_due(bench.job(key)) if isinstance(effect, CopyTo)]


def staged(bench: Bench, key: int, generation: int, why: str = "", holder: str = "") -> list[str]:
    return bench.said("checkpointed", key, "h1", generation, 1.0, 0 if why else 4096, "", why, None, True, holder)


def other(bench: Bench, key: int) -> str:
    [found] = {"h2", "h3"} - {bench.checkpoints(key).holder}
    return found


def test_a_host_is_named_as_the_job_starts_and_another_when_it_is_lost(bench: Bench) -> None:
    key = running(holding(bench))
    first = bench.checkpoints(key).holder
    assert first in ("h2", "h3")
    assert copies_to(bench, key) == [first]
    second = other(bench, key)
    for event in silent(bench.cluster, first, bench.now):
        bench.apply(event)
    assert copies_to(bench, key) == [second]
    down = silent(bench.cluster, second, bench.now)
    assert [type(event) for event in down] == [ev.HostDown], "there is no third one"


def test_elements_that_end_together_are_no_longer_copied_to_a_host(bench: Bench) -> None:
    array: int = holding(bench).bsub(J="a[1-3]", k=STAGE, m="h1")["job"]
    bench.step()
    keys = [key_of(array, index) for index in (1, 2, 3)]
    for key in keys:
        bench.start(key)
    bench.apply(*silent(bench.cluster, other(bench, keys[0]), bench.now))
    last = bench.checkpoints(keys[0]).holder
    assert [copies_to(bench, key) for key in keys] == 3 * [[last]]
    good = End(at=bench.now)
    told = [EndedReport(host="h1", key=key, uid=bench.uid(key), attempt=1, end=good, gone=True) for key in keys[:2]]
    bench.take(decide_reports(bench.cluster, told, bench.now))
    moved = silent(bench.cluster, last, bench.now)
    assert [type(event) for event in moved] == [ev.HostDown], "no other host is up"
    facts = replace(bench.cluster.hosts.rows[last].facts, copies_port=77)
    bench.apply(*greeted(bench.cluster, last, facts, {}, bench.now, lambda run: True))
    assert [bench.checkpoints(key).holder_port for key in keys[2:]] == [77]


def test_a_host_that_fails_is_followed_by_another_and_the_record_knows_who_holds_what(bench: Bench) -> None:
    key = running(holding(bench))
    first, second = bench.checkpoints(key).holder, other(bench, key)
    for generation in (1, 2):
        bench.said("checkpointed", key, "h1", generation, 0.0, 8 << 20)
    assert staged(bench, key, 1, holder=first) == ["CheckpointStaged"]
    assert staged(bench, key, 1, holder=first) == []
    assert staged(bench, key, 2, "the generation is damaged") == ["CheckpointStaged"], "which is not the holder's fault"
    assert staged(bench, key, 2, "host is full", first) == ["CheckpointStaged", "CheckpointHolder"]
    assert copies_to(bench, key) == [second]
    assert " Not staged: host is full\n" in told.section(bench.checkpoints(key))
    assert staged(bench, key, 2, holder=second) == ["CheckpointStaged"]
    assert staged(bench, key, 2, holder=first) == ["CheckpointStaged"], "also there"
    assert holds(bench.checkpoints(key)) == {second: [2], first: [2, 1]}
    assert f"-, copied to {second} {first}\n" in told.section(bench.checkpoints(key))
    assert staged(bench, key, 2, "its disk is gone", second) == ["CheckpointStaged", "CheckpointHolder"], "it had one"


def test_a_host_that_comes_back_on_another_port_is_named_again(bench: Bench) -> None:
    key = running(holding(bench))
    first = bench.checkpoints(key).holder
    before = [effect for effect in effects_due(bench.job(key)) if isinstance(effect, CopyTo)]
    facts = bench.cluster.hosts.rows[first].facts
    assert [type(event) for event in greeted(bench.cluster, first, facts, {}, bench.now)] == []
    for event in greeted(bench.cluster, first, replace(facts, copies_port=77), {}, bench.now):
        bench.apply(event)
    [after] = [effect for effect in effects_due(bench.job(key)) if isinstance(effect, CopyTo)]
    assert (after.holder, after.port) == (first, 77)
    assert after not in before, "it is sent"


def test_a_holder_that_is_no_host_is_not_recorded(bench: Bench) -> None:
    key = running(holding(bench))
    bench.said("checkpointed", key, "h1", 1)
    before = bench.checkpoints(key)
    assert staged(bench, key, 1, holder="nowhere") == staged(bench, key, 1, "it is full", holder="nowhere") == []
    assert bench.checkpoints(key) == before


def test_a_jobs_own_host_holds_nothing_for_it(bench: Bench) -> None:
    key = running(holding(bench))
    first = bench.checkpoints(key).holder
    bench.said("checkpointed", key, "h1", 1)
    staged(bench, key, 1, holder=first)
    bench.ended(key, "h1", 0, lost="gone with its host")
    assert copies_to(bench, key) == []
    assert bench.checkpoints(key).holder == first, "the next attempt goes on with it, unless it is there"


def test_what_was_on_hosts_that_are_down_is_told(bench: Bench) -> None:
    key = running(holding(bench))
    first = bench.checkpoints(key).holder
    second = other(bench, key)
    for generation, holder in ((1, second), (2, first)):
        bench.said("checkpointed", key, "h1", generation)
        staged(bench, key, generation, holder=holder)
    for event in silent(bench.cluster, first, bench.now):
        bench.apply(event)
    bench.said("checkpointed", key, "h1", 2, 0.0, 0, "app", "it was damaged or gone", 1)
    assert bench.checkpoints(key).why == f"its copy is on {first}, which is down"
    bench.said("checkpointed", key, "h1", 1, 0.0, 0, "app", "it was damaged or gone", -1)
    assert bench.checkpoints(key).why == "it was damaged or gone", "its host is up"
    assert bench.job(key).checkpoint == -1


def test_brestart_goes_on_from_what_hosts_have_of_the_former_job(bench: Bench) -> None:
    key = running(holding(bench))
    first = bench.checkpoints(key).holder
    bench.said("checkpointed", key, "h1", 3)
    staged(bench, key, 3, holder=first)
    job, spec = bench.job(key), bench.cluster.spec_of(key)
    held = tuple((host, tuple(numbers)) for host, numbers in holds(job.checkpoints).items())
    source = RestartSource(spec, JobText(command="x"), "x", 3, name_of(job, spec.user), held)
    ask = Submit(command="", restart_of=key, options={"k": "/own"})
    taken = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=source))
    bench.ended(key, "h1", 0)
    assert unneeded(bench.cluster, [source.copies]) == [source.copies]
    bench.take(taken)
    again = int(taken.answer["job"])
    assert bench.job(again).checkpoint == 3
    assert unneeded(bench.cluster, [source.copies]) == []
    [one] = holders(bench.cluster, b"secret", bench.job(again), bench.cluster.spec_of(again))
    assert (one.host, one.generations) == (first, (3,))
    assert one.token.endswith(f" {source.copies.rpartition('/')[2]} {spec.user}")
    with pytest.raises(Refused, match="Checkpoint log is not found"):
        submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL, source=RestartSource(spec, JobText(command="x"), "x")))
