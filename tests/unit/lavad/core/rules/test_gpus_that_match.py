"""Which devices a job may get: MIG instances of its size, its model, and as much memory as others leave."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.queue import QueueConfig
from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.job.job import Placed
from lavad.core.lang.gpureq import GpuReq, merge, parse
from lavad.core.plan.plan import Placement, Plan
from lavad.core.rules.gpus import is_open, matches, why_never
from lavad.core.site.host import ClosedGpu, Facts, Gpu, Host
from lavad.core.site.pend_reason import PendReason as R
from lavad.core.site.pend_reason import find_reason
from tests.support.examples import examples
from tests.support.worlds.world import World

WHOLE = Gpu("G0", 0, "NVIDIA H100 80GB HBM3", 81559, numa=0)
SPLIT = Gpu("G1", 1, "NVIDIA A100-SXM4-40GB", 40960, split=True)
SMALL = Gpu("M0", 2, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4864, parent="G1", profile="1g.5gb", slices=1, compute_slices=1)
LARGE = Gpu("M1", 3, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 19968, parent="G1", profile="3g.20gb", slices=3, compute_slices=3)
PART = Gpu("M2", 4, "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", 19968, parent="G1", profile="3g.20gb", slices=3, compute_slices=1)
EVERY = (WHOLE, SPLIT, SMALL, LARGE, PART)


def want(text: str) -> GpuReq:
    return merge(parse(text), GpuReq())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("num=1", "G0"),
        ("mig=1", "M0"),
        ("mig=3", "M2"),
        ("mig=3/3", "M1"),
        ("mig=3/2", ""),
        ("mig=7/7", ""),
        ("mig=3/3:gmem=19G", "M1"),
        ("mig=3/3:gmem=20G", ""),
        ("mig=1:gmodel=A100", "M0"),
        ("mig=1:gmodel=H100", ""),
        ("gmodel=H100", "G0"),
        ("gmodel=h100-80G", "G0"),
        ("gmodel=H100-94G", ""),
        ("gmodel=H100-40G", ""),
        ("gmodel=NVIDIAH10080GBHBM3", "G0"),
        ("gmodel=A100", ""),
        ("gmem=79G", "G0"),
        ("gmem=80G", ""),
    ],
)
def test_devices_that_match(text: str, found: str) -> None:
    assert " ".join(gpu.uuid for gpu in EVERY if matches(gpu, want(text))) == found


@pytest.mark.parametrize("text", ["A100-SXM4", "A100_SXM4", "nvidiaa100_sxm4_40gb", "NVIDIAA100-SXM4"])
def test_joints_in_a_models_name_are_one(text: str) -> None:
    assert matches(Gpu("G", 0, "NVIDIA A100-SXM4-40GB", 40960), want(f"gmodel={text}"))


def test_the_instances_of_a_closed_gpu_are_closed() -> None:
    for gpu, is_free in (("G0", True), ("G1", False), ("M0", False), ("M1", True)):
        host = Host(name="h1", facts=Facts(gpus=EVERY), closed_gpus=(ClosedGpu(gpu),))
        assert is_open(SMALL, GpuBook(closed=host.closed_devices()), want("mig=1")) == is_free


@pytest.mark.parametrize(
    ("gpus", "text", "reason"),
    [
        ((), "num=1", R.NEVER_GPUS),
        ((WHOLE,), "num=2", R.NEVER_GPUS),
        ((WHOLE,), "gmodel=A100", R.NEVER_GPU_MODEL),
        ((WHOLE,), "gmodel=H100-94G", R.NEVER_GPU_MEM),
        ((WHOLE,), "gmem=100G", R.NEVER_GPU_MEM),
        ((WHOLE,), "gmem=100G:gmodel=A100", R.NEVER_GPU_MODEL),
        ((WHOLE,), "mig=1", R.NEVER_GPU_MIG),
        ((), "mig=1", R.NEVER_GPUS),
        ((SPLIT, SMALL, LARGE), "mig=2", R.NEVER_GPU_MIG),
        ((SPLIT, SMALL, LARGE), "num=2:mig=1", R.NEVER_GPU_MIG),
        ((SPLIT, SMALL, LARGE), "num=1", R.NEVER_GPU_WHOLE),
        ((WHOLE, Gpu("G9", 1, "H100", 81559)), "num=2:glink=yes", R.NEVER_GPU_LINKS),
        ((WHOLE, Gpu("G9", 1, "H100", 81559, numa=0)), "num=2:gtile=1", R.NEVER_GPU_TILES),
        (EVERY, "mig=3/3", 0),
        (EVERY, "num=1", 0),
    ],
)
def test_what_is_missing_is_named(gpus: tuple[Gpu, ...], text: str, reason: int) -> None:
    assert why_never([gpus], want(text)) == reason
    assert why_never([(), gpus], want(text)) == reason
    named = find_reason(reason)
    assert named is None or "no host can ever" in named.text


def world(*gpus: Gpu, slots: int = 32) -> World:
    world = World()
    facts = Facts(ncpus=slots, max_mem=64_000, gpus=gpus)
    world.apply(ev.HostJoined(at=world.now, host="h1", facts=facts), ev.HostUp(at=world.now, host="h1"))
    world.load("h1", mem=64_000.0)
    return world


def held(world: World, *keys: int) -> list[str]:
    """The devices of each job."""
    runs = [world.cluster.jobs.rows[key].run for key in keys]
    return [" ".join(run.parts[0].gpus) if run is not None else "" for run in runs]


def test_instances_and_whole_gpus_go_to_who_asked_for_them() -> None:
    w = world(*EVERY)
    whole, one, small, none, two = (w.submit(gpu=text) for text in ("num=1", "num=2", "mig=1:j_exclusive=yes", "mig=1", "mig=3"))
    w.step()
    assert held(w, whole, one, small, none, two) == ["G0", "", "M0", "", "M2"]
    assert w.why_names(one)[0][0] == "NEVER_GPU_WHOLE"
    assert w.why_names(none)[0][0] == "GPU_BUSY"
    w.finish(small)
    w.step()
    assert held(w, none) == ["M0"]


def test_memory_is_reserved_and_several_jobs_share_it() -> None:
    w = world(WHOLE)
    jobs = [w.submit(gpu=f"gmem={size}") for size in ("40G", "30G", "20G", "9G", "1G")]
    w.step()
    assert held(w, *jobs) == ["G0", "G0", "", "G0", ""]
    assert w.why_names(jobs[2])[0][0] == "GPU_BUSY"
    w.finish(jobs[1])
    w.step()
    assert held(w, *jobs[2:]) == ["G0", "G0", "G0"]
    check_invariants(w.cluster)


def test_the_master_refuses_a_plan_that_reserves_too_much_or_gives_what_was_not_asked() -> None:
    w = world(*EVERY)
    first = w.submit(gpu="gmem=50G")
    w.step()
    second, third = w.submit(gpu="gmem=40G"), w.submit(gpu="mig=3/3")
    for key, device in ((second, "G0"), (third, "G0"), (third, "M2"), (third, "G1")):
        placement = Placement(key, (Placed(host="h1", slots=1, gpus=(device,)),))
        assert accept_plan(w.cluster, Plan(w.cluster.version, (placement,)), w.now, "s") == []
    assert held(w, first) == ["G0"]


ASKED = st.sampled_from(
    [
        "num=1",
        "num=2",
        "gmem=9G",
        "gmem=30G",
        "num=2:gmem=45G",
        "num=1/task:gmem=20G",
        "gmem=70G:gpack=yes",
        "j_exclusive=yes",
        "mode=exclusive_process:gmem=5G",
        "mig=1",
        "mig=1:gmem=3G",
        "mig=3/3:gmem=9G",
        "num=2:mig=1",
    ]
)
STEPS = st.lists(st.tuples(ASKED, st.sampled_from([1, 2, 3, 20]), st.integers(0, 9)), min_size=1, max_size=25)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS)
def test_no_gpu_is_given_beyond_its_memory_or_beside_a_job_that_is_alone(steps: list[tuple[str, int, int]]) -> None:
    more = [Gpu(f"G{at}", at, "H100", 81559) for at in (5, 6)]
    small = [Gpu(f"M{at}", at, "A100", 4864, parent="G1", slices=1, compute_slices=1) for at in (7, 8)]
    w = world(*EVERY, *more, *small)
    w.queues(QueueConfig("normal", priority=30), QueueConfig("big", priority=60, slot_reserve=100_000))
    sizes = {gpu.uuid: gpu for gpu in (*EVERY, *more, *small)}
    for text, slots, ends in steps:
        # jobs of 20 slots are promised places that others leave
        w.submit(gpu=text, slots=slots, queue="big" if slots == 20 else "normal", limits=Limits(run=600))
        w.later(30.0)
        w.step()
        check_invariants(w.cluster)
        alone: dict[str, int] = {}
        memory: dict[str, float] = dict.fromkeys(sizes, 0.0)
        for key in w.cluster.started:
            job: Any = w.cluster.jobs.rows[key]
            req = w.cluster.specs.rows[job.spec].gpu
            assert req is not None
            for uuid in job.run.parts[0].gpus:
                assert matches(sizes[uuid], req)
                memory[uuid] += req.gmem_mb or 0.0
                alone[uuid] = alone.get(uuid, 0) + (100 if req.j_exclusive else 1)
        assert all(taken <= sizes[uuid].memory for uuid, taken in memory.items())
        assert all(count <= 100 for count in alone.values())
        if ends < len(w.cluster.started):
            w.finish(sorted(w.cluster.started)[ends])
