"""What bjobs and bhist show of the use of GPUs: of a job that runs, that ended, that ran before."""

from __future__ import annotations

from msgspec.structs import replace

from lavad.core.job.gpu_use import GpuSums, GpuUse
from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import PartUsage
from tests.support.worlds.query_cluster import QueryCluster, at

BUSY = GpuUse(
    uuid="GPU-b",
    index=1,
    util=40,
    mem=100,
    max_mem=200,
    held=90.0,
    known=90.0,
    used=45.0,
    idle=9.0,
    max_util=97,
    min_util=1,
    mem_used=18.0,
    max_mem_util=30,
    min_mem_util=2,
    energy=405.4,
    pcie_sent=12.0,
    pcie_received=34.0,
)
DARK = GpuUse(uuid="GPU-a", index=0, held=90.0)
SHOWN = """
 HOST: ol2; CPU_TIME: 0 seconds
    GPU ID: 0
        Total Execution Time: 90 seconds
        Energy Consumed: -
        SM Utilization: -
        Memory Utilization: -
        Max GPU Memory Used: 0 bytes
        Idle Time: -
        PCIe Traffic: 0 MB sent, 0 MB received

    GPU ID: 1
        Total Execution Time: 90 seconds
        Energy Consumed: 405 Joules
        SM Utilization: Avg 50%, Max 97%, Min 1%
        Memory Utilization: Avg 20%, Max 30%, Min 2%
        Max GPU Memory Used: 209715200 bytes
        Idle Time: 9 seconds
        PCIe Traffic: 12 MB sent, 34 MB received
"""


def cluster() -> QueryCluster:
    c = QueryCluster(with_gpus=True)
    c.submit(1, gpu=GpuReq(num=2, mode="shared"))
    c.start(1, hosts="ol2", gpus=("GPU-a", "GPU-b"))
    return c


def test_a_job_that_runs_shows_what_it_uses_now() -> None:
    c = cluster()
    c.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=1, at=at("11:39:00"), gpus=(BUSY, DARK))}
    text = c.ask("bjobs", "1", l=True, gpu=True)[0]
    assert SHOWN + "        Now: SM Utilization 40%, GPU Memory Used 104857600 bytes\n" in text
    assert "\n GPU Energy Consumed: 405.400000 Joules\n" in text
    assert "GPU USAGE" not in text
    idle = replace(BUSY, idle=90.0)
    c.soft.usage[1] = {"ol2": PartUsage(key=1, attempt=1, at=at("11:39:00"), gpus=(idle, DARK))}
    assert "\n GPU USAGE: 2 GPUs asked, 1 idle 100 % of the time\n" in c.ask("bjobs", "1", l=True)[0]


def test_a_job_that_ended_shows_what_it_used() -> None:
    c = cluster()
    c.finish(1, gpus=(replace(BUSY, util=-1, mem=0), DARK))
    for command in ("bhist", "bjobs"):
        text = c.ask(command, "1", l=True, gpu=True)[0]
        assert SHOWN + "\n GPU Energy Consumed: 405.400000 Joules\n" in text, command
        assert "earlier attempts" not in text


def test_earlier_attempts_are_summed_in_a_line_of_their_own() -> None:
    c = cluster()
    job = c.cluster.jobs.rows[1]
    c.cluster.jobs.put(1, replace(job, gpus_before=GpuSums(200.0, 90.0, 100.0, 507.0)))
    text = c.ask("bjobs", "1", l=True, gpu=True)[0]
    assert "\n GPUs of earlier attempts: 200 GPU seconds held, 90 used, 100 idle, 507 Joules\n" in text


def test_a_job_without_gpus_shows_nothing_of_them() -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    assert "GPU ID" not in c.ask("bjobs", "1", l=True, gpu=True)[0]
