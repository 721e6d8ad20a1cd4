"""Which host holds copies of checkpoints for a job of another, and which copies are no longer needed."""

from __future__ import annotations

from typing import NoReturn

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.rules.copy_hosts import choose, name_of, unneeded
from tests.support.worlds.bench import Bench


def holding(bench: Bench, boots: str = "abc", ports: tuple[int, ...] = (1, 2, 3)) -> Bench:
    """Hosts h1 to h3 on the machines ``boots``, which hold copies at these ports."""
    for host, boot, port in zip(("h1", "h2", "h3"), boots, ports, strict=True):
        facts = replace(bench.cluster.hosts.rows[host].facts, boot_id=boot, copies_port=port)
        bench.apply(ev.HostJoined(at=bench.now, host=host, facts=facts))
    return bench


def test_another_host_on_another_machine_that_is_up(bench: Bench) -> None:
    holding(bench)
    assert {choose(bench.cluster, key, "h1") for key in range(20)} == {"h2", "h3"}, "the copies of many jobs are on many hosts"
    assert [choose(bench.cluster, 7, "h1") for _ in range(3)] == 3 * [choose(bench.cluster, 7, "h1")]
    assert {choose(bench.cluster, key, "h1", ("h2",)) for key in range(20)} == {"h3"}
    holding(bench, "aab")
    assert {choose(bench.cluster, key, "h1") for key in range(20)} == {"h3"}
    holding(bench, "aaa")
    assert {choose(bench.cluster, key, "h1") for key in range(20)} == {"h2", "h3"}, "one machine is better than none"
    bench.apply(ev.HostSwitched(at=bench.now, host="h2", closed=True, by="root"))
    assert {choose(bench.cluster, key, "h1") for key in range(20)} == {"h3"}, "who is closed may be gone soon"
    bench.apply(ev.HostDown(at=bench.now, host="h3"))
    assert choose(bench.cluster, 7, "h1") == "h2"
    assert choose(holding(bench, ports=(1, 0, 3)).cluster, 7, "h1") == ""


STAGE = "/own 10 stage"


def test_a_job_is_refused_where_nothing_could_be_copied(bench: Bench) -> None:
    with pytest.raises(Refused, match=r"and no host holds copies for others \(LAVA_CHKPNT_COPY_DIR\)$"):
        bench.spec_of(k=STAGE)
    holding(bench, ports=(0, 2, 0))
    with pytest.raises(Refused, match=r"and h2 is the only host that holds copies, and the job runs there$"):
        bench.spec_of(k=STAGE, m="h2")
    asked = bench.spec_of(k=STAGE, m="h1").checkpoint
    assert asked is not None
    assert (asked.stage, asked.to_hosts) == ("", True)
    params = replace(bench.cluster.conf.params, lava_chkpnt_stage_dir="/all")
    bench.configure(params=params)
    asked = bench.spec_of(k=STAGE).checkpoint
    assert asked is not None
    assert (asked.stage, asked.to_hosts) == ("/all", False)


def test_copies_of_jobs_that_are_over_are_not_needed(bench: Bench) -> None:
    holding(bench)
    key: int = bench.bsub(k=STAGE)["job"]
    bench.step()
    bench.start(key)
    own = name_of(bench.job(key), "alice")
    user, _, job = own.partition("/")
    others = ["alice/99-5", "nonsense", "alice/x-1", f"bob/{job}", f"{user}/{key}-1", f"alice/{'9' * 5000}-1"]
    assert unneeded(bench.cluster, [own, *others]) == others
    bench.ended(key, "h1", 0)
    assert unneeded(bench.cluster, [own]) == [own]


def test_of_all_classes_of_jobs_none_is_looked_at() -> None:
    bench = holding(Bench())
    key: int = bench.bsub(k=STAGE)["job"]
    own = name_of(bench.job(key), "alice")

    class Unread(dict[int, Spec]):
        def values(self) -> NoReturn:
            raise AssertionError

    bench.cluster.specs.rows = Unread(bench.cluster.specs.rows)
    assert unneeded(bench.cluster, [own, "alice/99-5"]) == ["alice/99-5"]
