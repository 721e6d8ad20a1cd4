"""Methods of checkpoints at submission: what auto picks, the hosts that criu needs, and jobs that it cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Modify, OptionValue, Refused, Submit
from tests.support.worlds.bench import ALICE, LOCAL, Bench


@dataclass
class Submitted:
    method: str
    resreq: str
    notices: list[str]


def bsub(bench: Bench, k: str, **options: OptionValue) -> Submitted:
    ask = Submit(command="c", options={"k": k, **options})
    decided = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL))
    answer: Any = bench.take(decided)
    spec = bench.cluster.spec_of(answer["job"])
    assert spec.checkpoint is not None
    return Submitted(spec.checkpoint.method, spec.resreq, answer["notices"])


def bmod(bench: Bench, **options: OptionValue) -> None:
    ask = Modify(job="1", options=options)
    bench.take(modify(bench.cluster, ask, JobText(command="c"), ALICE, bench.now, LOCAL))


@pytest.fixture
def able() -> Bench:
    """CRIU works on the first host."""
    bench = Bench()
    row = bench.cluster.hosts.rows["h1"]
    bench.apply(ev.HostJoined(at=bench.now, host="h1", facts=replace(row.facts, boot_id="b", resources=("criu",))))
    return bench


def test_criu_goes_to_one_host_that_can(able: Bench) -> None:
    assert bsub(able, "/c method=criu").resreq == "select[criu]"
    assert bsub(able, "/c method=criu", n="4").resreq == "select[criu] span[hosts=1]"
    assert bsub(able, "/c method=criu", n="4", R="span[hosts=1] select[mem>5]").resreq == "select[criu && mem>5] span[hosts=1]"
    assert bsub(able, "/c method=criu", R="select[criu]").resreq == "select[criu]"
    assert bsub(able, "/c method=criu", n="4", R="select[criu]").resreq == "select[criu] span[hosts=1]"
    assert bsub(able, "/c method=criu", R="select[!criu || mem>5]").resreq == "select[criu && (!criu || mem>5)]"
    ways = bsub(able, "/c method=criu", n="4", R="{select[mem>5]} || {span[hosts=1]}@5")
    assert ways.resreq == "{select[criu && mem>5] span[hosts=1]} || {select[criu] span[hosts=1]}@5"
    assert bsub(able, "/c method=app").resreq == ""


def test_a_job_that_bmod_gives_more_slots_stays_on_one_host(able: Bench) -> None:
    assert bsub(able, "/c method=criu").resreq == "select[criu]"
    bmod(able, n="4")
    assert able.cluster.spec_of(1).resreq == "select[criu] span[hosts=1]"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"n": "4", "R": "span[ptile=2]"}, "it dumps and restores the processes of one host: -n needs span[hosts=1]"),
        ({"n": "4", "R": "2*{select[mem>5]}+2*{select[mem>7]}"}, "it dumps and restores the processes of one host"),
        ({"a": "torchrun", "n": "2"}, "the tasks of -a torchrun are not one process tree"),
        ({"a": "mpi", "n": "2", "label": True}, "the ranks of the job write to one output"),
        ({"gpu": "num=1"}, "lava cannot restore the state of GPUs"),
        ({"a": "container(/i.sif)"}, "the processes of container /i.sif are its runner's"),
    ],
)
def test_what_criu_cannot_do_is_refused_and_auto_leaves_it_to_the_program(
    able: Bench, options: dict[str, OptionValue], why: str
) -> None:
    with pytest.raises(Refused) as refused:
        bsub(able, "/c method=criu", **options)
    assert str(refused.value).startswith(f"criu: {why}")
    auto = bsub(able, "/c method=auto", **options)
    assert (auto.method, auto.notices) == ("app", ["Job will be checkpointed by method app"])


def test_auto_picks_what_the_hosts_can_do(able: Bench) -> None:
    auto = bsub(able, "/c method=auto")
    assert (auto.method, auto.resreq) == ("criu", "select[criu]")
    assert auto.notices == ["Job will be checkpointed by method criu"]
    assert bsub(able, "/c method=auto", m="h2").method == "app", "no host of -m can"
    assert bsub(able, "/c method=auto", n="4").method == "app", "its hosts are left as they are"
    assert bsub(able, "/c method=auto", n="4", R="span[hosts=1]").method == "criu"
    assert bsub(able, "/c method=auto", n="4", R="span[hosts=1]", a="mpi").method == "app", "its network, too"
    one, other = "{select[mem>5] span[hosts=1]}", "{select[mem>7]}"
    assert bsub(able, "/c method=auto", n="4", R=f"{one} || {other}").method == "app", "one of its ways is open"
    assert bsub(able, "/c method=auto", n="4", R=f"{one} || {{span[hosts=1]}}").method == "criu"
    assert bsub(able, "/c").method == "", "what nobody asked for is as before"
    conf = able.cluster.conf
    able.cluster.conf = replace(conf, params=replace(conf.params, lsb_echkpnt_method="mine"))
    assert bsub(able, "/c method=auto").method == "auto", "the site's own"
