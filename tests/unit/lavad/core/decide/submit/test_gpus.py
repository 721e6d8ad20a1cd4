"""What a job asks of GPUs: -gpu, rusage[ngpus_physical=N] and its kin, GPU_REQ and LSB_GPU_REQ, at submission and by bmod."""

from __future__ import annotations

import pytest

from config.model.queue import ApplicationConfig, QueueConfig
from lavad.core.decide.modify.modify import modify
from lavad.core.decide.modify.switch import switch
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Modify, Refused, Select, Switch
from lavad.core.lang.gpureq import show
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ALICE, LOCAL, Bench


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"R": "rusage[ngpus_physical=2]"}, "num=2:mode=shared:mps=no:j_exclusive=no"),
        ({"R": "select[ngpus>0] rusage[ngpus_excl_p=1:mem=5]"}, "num=1:mode=exclusive_process:mps=no:j_exclusive=yes"),
        ({"R": "rusage[ngpus_shared=1/task]"}, "num=1/task:mode=shared:mps=no:j_exclusive=no"),
        ({"R": "rusage[ngpus_physical=2]", "gpu": "num=1"}, "num=1:mode=shared:mps=no:j_exclusive=no"),
        ({"R": "rusage[ngpus_excl_p=2]", "gpu": "gmem=1G"}, "num=2:mode=exclusive_process:mps=no:j_exclusive=yes:gmem=1024M"),
    ],
)
def test_gpus_in_rusage(bench: Bench, options, wanted) -> None:
    gpu = bench.cluster.spec_of(bench.bsub(**options)["job"]).gpu
    assert gpu is not None
    assert show(gpu) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "rusage[ngpus_physical=1.5]",
        "1*{rusage[ngpus_physical=1]}+1*{}",
        "rusage[ngpus_physical=1 || mem=1]",
        "rusage[ngpus_physical=1:ngpus_shared=2]",
    ],
)
def test_gpus_that_cannot_be(bench: Bench, text) -> None:
    with pytest.raises(Refused, match="GPUs"):
        bench.bsub(R=text)


def test_none_asked(bench: Bench) -> None:
    assert bench.cluster.spec_of(bench.bsub(R="select[ngpus>0] rusage[ngpus_physical=0]")["job"]).gpu is None


def _site(bench: Bench) -> None:
    """An application, a queue and a cluster that each say something else."""
    bench.configure(
        params=Params(lsb_gpu_req="j_exclusive=yes:gmem=1G:mps=yes"),
        apps=(ApplicationConfig("train", gpu_req="num=4:gpack=yes"), ApplicationConfig("plain")),
        queues=(
            QueueConfig("normal"),
            QueueConfig("gpu", gpu_req="num=2/task:gmem=2G:gmodel=H100"),
            QueueConfig("old", res_req="rusage[ngpus_physical=3]"),
        ),
    )


LEVELS = [
    ({}, "normal", ""),
    ({"app": "plain"}, "normal", ""),
    ({"gpu": "-"}, "normal", "num=1:mode=shared:mps=yes:j_exclusive=yes:gmem=1024M"),
    ({"gpu": "j_exclusive=no"}, "normal", "num=1:mode=shared:mps=yes:j_exclusive=no:gmem=1024M"),
    ({}, "gpu", "num=2/task:mode=shared:mps=yes:j_exclusive=yes:gmodel=H100:gmem=2048M"),
    ({"gpu": "-"}, "gpu", "num=2/task:mode=shared:mps=yes:j_exclusive=yes:gmodel=H100:gmem=2048M"),
    ({"app": "train"}, "gpu", "num=4:mode=shared:mps=yes:j_exclusive=yes:gpack=yes:gmodel=H100:gmem=2048M"),
    ({"app": "plain"}, "gpu", "num=2/task:mode=shared:mps=yes:j_exclusive=yes:gmodel=H100:gmem=2048M"),
    (
        {"app": "train", "gpu": "mps=no:gmem=3G"},
        "gpu",
        "num=4:mode=shared:mps=no:j_exclusive=yes:gpack=yes:gmodel=H100:gmem=3072M",
    ),
    (
        {"app": "train", "R": "rusage[ngpus_physical=1]"},
        "normal",
        "num=1:mode=shared:mps=yes:j_exclusive=yes:gpack=yes:gmem=1024M",
    ),
    ({}, "old", "num=3:mode=shared:mps=yes:j_exclusive=yes:gmem=1024M"),
    ({"gpu": "num=1"}, "old", "num=1:mode=shared:mps=yes:j_exclusive=yes:gmem=1024M"),
]


@pytest.mark.parametrize(("options", "queue", "wanted"), LEVELS)
def test_levels_merge_option_by_option(bench: Bench, options, queue, wanted) -> None:
    _site(bench)
    gpu = bench.cluster.spec_of(bench.bsub(q=queue, **options)["job"]).gpu
    assert (show(gpu) if gpu is not None else "") == wanted


def test_what_has_no_effect_is_told(bench: Bench) -> None:
    note = "GPU requirement mps=per_gpu,shared: shared has no effect, each job has MPS daemons of its own"
    assert bench.bsub(gpu="mps=per_gpu,share")["notices"] == [note]
    assert bench.bsub(gpu="mps=per_gpu,nocvd")["notices"] == []


def test_a_plain_gmem_counts_in_the_unit_of_the_site(bench: Bench) -> None:
    bench.configure(params=Params(lsf_unit_for_limits="GB"))
    gpu = bench.cluster.spec_of(bench.bsub(gpu="gmem=2")["job"]).gpu
    assert gpu is not None
    assert gpu.gmem_mb == 2048


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"gpu": "num=0"}, "Bad GPU requirement <num=0>: num is a number from 1 to 999999, then perhaps /task or /host"),
        ({"gpu": "gvendor=amd"}, "GPU requirement gvendor=amd is not supported by lava: it finds GPUs of NVIDIA only"),
        ({"gpu": "glink=yes", "q": "mig"}, "Bad GPU requirement: mig=1 and glink=yes exclude each other"),
        ({"q": "broken"}, "queue broken: GPU_REQ: Bad GPU requirement <num=x>"),
        ({"q": "parts"}, "queue parts: RES_REQ: GPUs in parts or alternatives"),
        ({"q": "cut"}, "queue cut: RES_REQ: ] is missing: Bad resource requirement syntax"),
    ],
)
def test_what_is_refused(bench: Bench, options, text) -> None:
    bench.configure(
        queues=(
            QueueConfig("normal"),
            QueueConfig("mig", gpu_req="mig=1"),
            QueueConfig("broken", gpu_req="num=x"),
            QueueConfig("cut", res_req="rusage[ngpus_physical="),
            QueueConfig("parts", res_req="{rusage[ngpus_physical=1]}||{rusage[mem=1]}"),
        )
    )
    with pytest.raises(Refused) as raised:
        bench.bsub(**options)
    assert raised.value.text.startswith(text)
    assert "\n" not in raised.value.text


def _bmod(bench: Bench, job: int, **options) -> str:
    bench.take(modify(bench.cluster, Modify(job=str(job), options=options), JobText(command="sleep 1"), ALICE, bench.now, LOCAL))
    gpu = bench.cluster.spec_of(job).gpu
    return "" if gpu is None else show(gpu)


def test_bmod_merges_again(bench: Bench) -> None:
    _site(bench)
    job = bench.bsub(q="gpu", gpu="num=1:gmem=5G")["job"]
    whole = "num={}:mode=shared:mps=yes:j_exclusive=yes:gmodel=H100:gmem={}M"
    assert _bmod(bench, job, gpu="num=3") == whole.format(3, 2048)
    assert _bmod(bench, job, Jd="x") == whole.format(3, 2048)
    assert _bmod(bench, job, gpu="-") == whole.format("2/task", 2048)
    assert _bmod(bench, job, q="normal") == "num=1:mode=shared:mps=yes:j_exclusive=yes:gmem=1024M"
    assert _bmod(bench, job, gpun=True) == ""
    assert _bmod(bench, job, q="gpu") == whole.format("2/task", 2048)
    assert _bmod(bench, job, R="rusage[ngpus_physical=1]") == whole.format(1, 2048)
    assert _bmod(bench, job, Rn=True, q="normal") == ""
    with pytest.raises(Refused, match="Bad GPU requirement"):
        _bmod(bench, job, gpu="num=x")


def test_bswitch_merges_again_for_a_job_that_waits(bench: Bench) -> None:
    _site(bench)
    bench.hosts("g1", slots=4, gpus=2)

    def moved(job: int, queue: str) -> str:
        assert bench.asked(switch, Switch(jobs=Select(ids=[str(job)]), queue=queue)) == [(str(job), "")]
        gpu = bench.cluster.spec_of(job).gpu
        return "" if gpu is None else show(gpu)

    job = bench.bsub(gpu="num=1:mps=no")["job"]
    own = "num=1:mode=shared:mps=no:j_exclusive=yes"
    assert moved(job, "gpu") == f"{own}:gmodel=H100:gmem=2048M"
    assert moved(job, "normal") == f"{own}:gmem=1024M"
    plain = bench.bsub()["job"]
    assert moved(plain, "gpu").startswith("num=2/task:")
    assert moved(plain, "normal") == ""
    bench.step()
    assert moved(job, "gpu") == f"{own}:gmem=1024M"


def test_a_job_of_a_release_before_keeps_what_it_asked_for(bench: Bench) -> None:
    job = bench.submit(gpu="num=2")
    assert _bmod(bench, job, R="rusage[mem=1]") == "num=2:mode=shared:mps=no:j_exclusive=no"
