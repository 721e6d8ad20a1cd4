"""A replica that comes late knows what the others know."""

from __future__ import annotations

import msgspec

from lavad.core.plan.volatile import GpuState, PartUsage, ReservedStart, Soft, SoftUpdate, WhyClass, all_of, joined, update


def test_all_of_it_makes_a_new_replica_know_the_same() -> None:
    news = SoftUpdate(
        load={"h1": {"r1m": 0.5}},
        gpus={"h1": (GpuState("GPU-a", util=70), GpuState("GPU-b", error="lost"))},
        gpu_errors={"h1": "", "h2": "the NVIDIA driver hangs"},
        usage=[("h1", PartUsage(key=7, attempt=1, at=3.0)), ("h2", PartUsage(key=7, attempt=1, at=3.0))],
        why={1: WhyClass(((1301, 2, ("h1",)),))},
        why_job={7: 1301},
        promises={8: ReservedStart(5.0, (("h1", 2),))},
        notices=("a certificate ends soon",),
    )
    assert all(value for value in msgspec.structs.asdict(news).values()), "a field of no value proves nothing"
    first, late = Soft(), Soft()
    update(first, news)
    update(late, msgspec.msgpack.decode(msgspec.msgpack.encode(all_of(first)), type=SoftUpdate))
    assert vars(late) == vars(first)
    # a replica counts for itself which hosts left while it listens
    assert set(vars(first)) - {"hosts_left"} == set(SoftUpdate.__struct_fields__)


def test_news_that_is_told_together_says_what_it_says_one_by_one() -> None:
    news = [
        SoftUpdate(load={"h1": {"r1m": 0.5}, "h2": {"r1m": 1.0}}, notices=("a certificate ends soon",), why_job={7: 1301}),
        SoftUpdate(load={"h1": {"r1m": 2.5}}, gpus={"h1": (GpuState("GPU-a", util=70),)}, gpu_errors={"h2": "it hangs"}),
        SoftUpdate(why={1: WhyClass(((1301, 2, ("h1",)),)), 2: WhyClass(((1302, 1, ()),))}),
        SoftUpdate(usage=[("h1", PartUsage(key=7, attempt=1, at=3.0))], why={1: WhyClass(((1303, 2, ()),))}, why_job={}),
        SoftUpdate(usage=[("h1", PartUsage(key=7, attempt=1, at=9.0))], gpu_errors={"h2": ""}),
        SoftUpdate(promises={8: ReservedStart(5.0, (("h1", 2),))}, notices=()),
    ]
    before = msgspec.msgpack.encode(news)
    one_by_one, together = Soft(), Soft()
    for one in news:
        update(one_by_one, one)
    update(together, joined(news))
    assert vars(together) == vars(one_by_one)
    assert msgspec.msgpack.encode(news) == before
