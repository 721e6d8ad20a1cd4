"""badmin gpuclose and gpuopen: by index or UUID, with hclose's rights; a name that is not known refuses all."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.decide.control.gpus import switch_gpus
from lavad.core.lang.asks import Caller, Gpus, Refused
from tests.support.worlds.bench import ADMIN, ALICE, Bench


def bench() -> Bench:
    b = Bench()
    b.hosts("g1", "g2", gpus=3)
    return b


def asks(b: Bench, *gpus: str, close: bool = True, caller: Caller = ADMIN) -> list[tuple[str, str]]:
    answer = b.take(switch_gpus(b.cluster, Gpus(gpus=list(gpus), close=close, comment="c"), caller, b.now))
    return [(row["gpu"], row["why"]) for row in answer["results"]]


def closed(b: Bench, host: str = "g1") -> list[str]:
    return [gpu.uuid for gpu in b.cluster.hosts.rows[host].closed_gpus]


def test_by_index_and_by_uuid():
    b = bench()
    assert asks(b, "g1:0,GPU-g1-2", "g2:1") == [("g1:0", ""), ("g1:GPU-g1-2", ""), ("g2:1", "")]
    assert (closed(b), closed(b, "g2")) == (["GPU-g1-0", "GPU-g1-2"], ["GPU-g2-1"])
    [one] = b.cluster.hosts.rows["g2"].closed_gpus
    assert (one.by, one.why, one.cause, one.at) == ("boss", "c", "", b.now)
    assert asks(b, "g1:2", "g1:1", close=False) == [("g1:2", ""), ("g1:1", "")]
    assert closed(b) == ["GPU-g1-0"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nohost:0", "nohost: Bad host name, host group name or cluster name"),
        ("g1:7", "g1:7: No such GPU on host <g1>"),
        ("g1:0,x", "g1:x: No such GPU on host <g1>"),
        ("g1:-1", "g1:-1: No such GPU on host <g1>"),
        ("g1:,", "g1:: No such GPU on host <g1>"),
        ("g1", "g1: No GPU is named; say HOST:ID[,ID ...], an ID is an index or a UUID"),
        ("h1:0", "h1:0: No such GPU on host <h1>"),
    ],
)
def test_what_is_not_there_is_named_and_nothing_is_done(name: str, why: str):
    b = bench()
    with pytest.raises(Refused) as refusal:
        asks(b, "g2:1", name)
    assert str(refusal.value) == why
    assert closed(b) == closed(b, "g2") == []


def test_others_may_not():
    b = bench()
    assert asks(b, "g1:0", caller=ALICE) == [("g1:0", "User permission denied")]
    assert closed(b) == []


def test_an_administrator_opens_what_the_master_has_closed_also_when_it_is_no_longer_there():
    b = bench()
    b.apply(ev.GpuSwitched(at=b.now, host="g1", gpu="GPU-old", closed=True, by="lava", comment="lost", cause="lost"))
    assert asks(b, "g1:GPU-old", close=False) == [("g1:GPU-old", "")]
    assert closed(b) == []


def test_an_index_is_that_of_a_whole_gpu():
    b = bench()
    facts = b.cluster.hosts.rows["g1"].facts
    part = replace(facts.gpus[0], uuid="MIG-1", index=1, parent="GPU-g1-0")
    b.apply(ev.HostJoined(at=b.now, host="g1", facts=replace(facts, gpus=(part, *facts.gpus))))
    asks(b, "g1:1", "g1:MIG-1")
    assert closed(b) == ["GPU-g1-1", "MIG-1"]
