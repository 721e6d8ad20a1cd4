"""bclusters, bsla, lsacct, and what lsload, lshosts and bhosts say of GPUs and processors."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import PartUsage, TaskUsage
from tests.support.worlds.query_cluster import QueryCluster, at

TASKS = (
    '812 "alice" 0 {t} {e} "ol1" "ol2" "/home/alice" "make all" 1.500000 0.500000 2048.0 -1 -1 -1\n'
    '813 "bob" 256 {t} {e} "ol1" "ol3" "/home/bob" "false" 0.100000 0.000000 2048.0 -1 -1 -1\n'
    '814 "alice" 0 cut\n'
).format(t=int(at("11:30:00")), e=int(at("11:31:00")))


def busy() -> QueryCluster:
    c = QueryCluster(with_gpus=True)
    c.submit(1, gpu=GpuReq(num=1, mode="shared", j_exclusive=True))
    c.start(1, hosts="ol2", gpus=("GPU-b",))
    task = TaskUsage(rank=0, pid=7, gpu_mem=2048, gpu_util=40)
    c.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=1, at=at("11:39:00"), tasks=(task,))}
    return c


def test_there_is_one_cluster_and_no_service_class() -> None:
    c = QueryCluster()
    out, err, status = c.ask("bclusters")
    assert (err, status) == ("", 0)
    assert out.startswith("[Job Forwarding Information ]\nNo local queue sending/receiving jobs from remote clusters\n")
    assert "[Resource Lease Information ]\nNo resources have been exported or borrowed\n" in out
    assert c.ask("bclusters", "other")[1:] == ("other: Bad cluster name\n", 255)
    assert c.ask("bsla")[1:] == ("No service class is configured\n", 255)
    assert c.ask("bsla", "gold")[1:] == ("gold: No such service class\n", 255)
    assert c.ask("bhosts", e=True) == ("No host is exported to another cluster\n", "", 0)


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


@pytest.mark.parametrize(
    ("words", "options", "tasks", "failed"),
    [([], {}, 1, 0), ([], {"u": "all"}, 2, 1), (["813"], {}, 1, 1), ([], {"u": "all", "m": "ol3"}, 1, 1)],
)
def test_tasks_of_a_log(words: list[str], options: dict[str, Any], tasks: int, failed: int) -> None:
    data = base64.b64encode(zlib.compress(TASKS.encode())).decode()
    out, err, status = QueryCluster().ask("lsacct", *words, f=data, l=True, **options)
    assert (err, status) == ("", 0)
    assert f"Total number of tasks:      {tasks:>7}      Number of failed tasks:     {failed:>7}\n" in out
    assert out.count("Process ID:") == tasks


def test_no_tasks_and_no_log() -> None:
    data = base64.b64encode(zlib.compress(TASKS.encode())).decode()
    c = QueryCluster()
    assert c.ask("lsacct", "9", f=data)[::2] == ("No matching task found\n", 255)
    assert c.ask("lsacct", "x", f=data)[1:] == ("x: Bad process ID\n", 255)
    assert c.ask("lsacct")[1] == "lsacct: no task log is named; tasks of lava are jobs: see bacct\n"
    out = c.ask("lsclusters", l=True)[0]
    assert "LSF administrators: openlava\n" in out
