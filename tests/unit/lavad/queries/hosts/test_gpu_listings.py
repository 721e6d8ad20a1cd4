"""What lsload, lshosts and bhosts say of GPUs and processors."""

from __future__ import annotations

from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import PartUsage, TaskUsage
from tests.support.worlds.query_cluster import QueryCluster, at


def busy() -> QueryCluster:
    c = QueryCluster(with_gpus=True)
    c.submit(1, gpu=GpuReq(num=1, mode="shared", j_exclusive=True))
    c.start(1, hosts="ol2", gpus=("GPU-b",))
    task = TaskUsage(rank=0, pid=7, gpu_mem=2048, gpu_util=40)
    c.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=1, at=at("11:39:00"), tasks=(task,))}
    return c


def test_load_of_gpus_in_as_many_columns_as_monitors_count() -> None:
    lines = busy().ask("lsload", gpuload=True, w=True)[0].splitlines()
    assert len(lines[0].split()) == 14
    first, second = (line.split() for line in lines[1:])
    assert (first[:2], second[:2]) == (["ol2", "0"], ["ol2", "1"])
    assert (first[6], second[6], second[10], second[12]) == ("0%", "40%", "2.0G", "ok")
    assert len(busy().ask("lsload", gpuload=True)[0].splitlines()[0].split()) == 13
    sums = busy().ask("lsload", "ol2", gpu=True)[0].splitlines()
    assert sums[1].split() == ["ol2", "ok", "2", "0%", "20%", "2"]


def test_gpus_of_a_host_at_length() -> None:
    text = busy().ask("bhosts", "ol2", gpu=True, l=True)[0]
    static, dynamic, jobs = (part.splitlines() for part in text.split("\n\n")[1:])
    assert (static[0], dynamic[0], jobs[0]) == ("STATIC ATTRIBUTES", "DYNAMIC ATTRIBUTES", "GPU JOB INFORMATION")
    assert jobs[2].split() == ["0", "N", "-", "-", "-"]
    assert jobs[3].split() == ["1", "Y", "1", "-", "-"]
    assert dynamic[3].split()[:3] == ["1", "SHARED", "2.0G"]


def test_facts_of_gpus_and_processors_in_lsf_s_columns() -> None:
    lines = busy().ask("lshosts", gpu=True)[0].splitlines()
    assert lines[0].split() == ["HOST_NAME", "gpu_id", "gpu_model", "gpu_driver", "gpu_factor", "numa_id", "vendor"]
    assert [line.split()[0] for line in lines[1:]] == ["ol1", "ol2", "1", "ol3"]
    assert busy().ask("lshosts", "ol1", T=True)[0] == "Host ol1: its topology is not known\n"
