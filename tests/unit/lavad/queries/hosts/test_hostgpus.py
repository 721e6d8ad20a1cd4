"""GPUs in bhosts, lshosts and lsload: figures of the agent, instances, what is reserved, closed or ill."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import Placed
from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import GpuState
from lavad.core.site.host import Facts, Gpu
from tests.support.worlds.query_cluster import QueryCluster, at

GPUS = (
    Gpu("GPU-0", 0, "NVIDIA A100-SXM4-40GB", 40960, links="XN---", numa=0),
    Gpu("GPU-1", 1, "NVIDIA A100-SXM4-80GB", 81920, links="NX---", numa=0),
    Gpu("GPU-2", 2, "NVIDIA H100 80GB HBM3", 81559, links="--X--", numa=1, split=True),
    Gpu("MIG-a", 2, "NVIDIA H100 80GB HBM3", 40448, numa=1, parent="GPU-2", profile="3g.40gb", slices=3, compute_slices=3),
    Gpu("MIG-b", 2, "NVIDIA H100 80GB HBM3", 9728, numa=1, parent="GPU-2", profile="1g.10gb", slices=1, compute_slices=1),
)


def cluster() -> QueryCluster:
    """Job 1 reserves memory of GPU-0, job 2 has MIG-b to itself; GPU-1 is closed."""
    c = QueryCluster()
    facts = Facts(ncpus=2, max_mem=24105, gpus=GPUS, gpu_driver="550.54.15")
    c.feed(ev.HostJoined(at=at("11:31:37"), host="ol2", facts=facts))
    c.soft.gpus["ol2"] = {
        state.uuid: state
        for state in (
            GpuState("GPU-0", 70, 35, 3000, 58, 511.4, 2, 0, "EXCLUSIVE_PROCESS"),
            GpuState("GPU-1", 0, 0, 0, 35, 70.0, 0, 8, "DEFAULT", error="lost"),
            GpuState("GPU-2", mem_used=500, temperature=40, power=90.0, ecc=0, pstate=0, mode="DEFAULT"),
            GpuState("MIG-a", mem_used=0, mode="DEFAULT"),
            GpuState("MIG-b", mem_used=500, mode="DEFAULT"),
        )
    }
    c.submit(1, gpu=GpuReq(num=1, mode="exclusive_process", gmem_mb=2048))
    c.start(1, hosts="ol2", gpus=("GPU-0",))
    c.submit(2, gpu=GpuReq(num=1, mode="shared", j_exclusive=True))
    c.start(2, hosts="ol2", gpus=("MIG-b",))
    c.feed(ev.GpuSwitched(at=at("11:39:00"), host="ol2", gpu="GPU-1", closed=True, by="lava", comment="lost", cause="lost"))
    return c


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_who_holds_gpus() -> None:
    shown = rows(cluster().ask("bhosts", "ol2", gpu=True, noheader=True)[0])
    assert shown == [
        ["ol2", "0", "NVIDIAA100-SXM4-40GB", "2.9G", "2.0G", "1", "1", "0", "0"],
        ["1", "NVIDIAA100-SXM4-80GB", "0M", "0M", "0", "0", "0", "0"],
        ["2", "NVIDIAH10080GBHBM3", "500M", "0M", "0", "0", "0", "0"],
        ["2:0", "3g.40gb", "0M", "0M", "0", "0", "0", "0"],
        ["2:1", "1g.10gb", "500M", "0M", "1", "1", "0", "0"],
    ]


@pytest.mark.parametrize(
    ("wide", "title"),
    [
        (False, "HOST_NAME          GPU_ID                MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV"),
        (True, "HOST_NAME            GPU_ID                MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV"),
    ],
)
def test_the_lines_of_a_host_begin_with_its_name_once(wide: bool, title: str) -> None:
    """As LSF prints them: programs read GPU_ID by its title, and take a name for the begin of another host."""
    lines = cluster().ask("bhosts", "ol2", gpu=True, w=wide)[0].splitlines()
    assert lines[0] == title
    assert [line[: title.index("GPU_ID")].strip() for line in lines[1:]] == ["ol2", "", "", "", ""]
    assert {len(line) for line in lines} == {len(title)}


def test_a_host_s_gpus_at_length() -> None:
    c = cluster()
    c.soft.gpu_errors["ol2"] = "the NVIDIA driver hangs"
    head, static, dynamic, jobs = c.ask("bhosts", "ol2", gpu=True, l=True)[0].split("\n\n")
    assert rows(head)[2:] == [["3", "0", "0"], ["GPU", "DRIVER:", "the", "NVIDIA", "driver", "hangs"]]
    assert rows(static)[2] == ["0", "NVIDIAA100-SXM4-40GB", "40G", "-", "2.0G", "0", "-/Y/N/N/N", "N"]
    assert [row[-1] for row in rows(static)[2:]] == ["N", "N", "Y", "Y", "Y"]
    assert rows(dynamic)[2] == ["0", "EXCLUSIVE_PROCESS", "2.9G", "2.0G", "58C", "2", "70%", "35%", "0", "ok", "-"]
    assert rows(dynamic)[3][-2:] == ["closed", "lost"]
    assert rows(dynamic)[5] == ["2:0", "SHARED", "0M", "0M", "-", "-", "-", "-", "-", "ok", "-"]
    assert rows(jobs)[2] == ["0", "N", "1", "-", "-"]
    assert rows(jobs)[6] == ["2:1", "Y", "2", "-", "-"]


def test_gpus_that_are_reserved_for_a_waiting_job() -> None:
    c = cluster()
    c.submit(3, gpu=GpuReq(num=1, mode="shared"))
    c.feed(ev.SlotsReserved(at=at("11:39:20"), key=3, parts=(Placed("ol2", 1, gpus=("GPU-0", "MIG-a")),)))
    assert [row[-4:] for row in rows(c.ask("bhosts", "ol2", gpu=True, noheader=True)[0])][::3] == [
        ["2", "1", "0", "1"],
        ["1", "0", "0", "1"],
    ]
    jobs = rows(c.ask("bhosts", "ol2", gpu=True, l=True)[0].split("\n\n")[3])
    assert (jobs[2], jobs[5]) == (["0", "N", "1", "-", "3"], ["2:0", "N", "-", "-", "3"])


def test_who_holds_gpus_in_the_record_of_a_host() -> None:
    table = cluster().ask("bhosts", "ol2", l=True)[0].partition(" GPU ALLOCATION:\n")[2]
    assert rows(table)[3:] == [
        ["2", "NVIDIA", "H100", "80GB", "HBM3", "80G", "0", "GPU-2"],
        ["2:0", "3g.40gb", "40G", "0", "MIG-a"],
        ["2:1", "1g.10gb", "9.5G", "1", "MIG-b"],
    ]


def test_fields_of_bhosts_count_gpus_and_one_counts_instances() -> None:
    fields = "ngpus ngpus_alloc ngpus_excl_alloc ngpus_shared_alloc ngpus_shared_jexcl_alloc"
    fields += " ngpus_excl_avail ngpus_shared_avail mig_alloc"
    c = cluster()
    assert rows(c.ask("bhosts", "ol2", o=fields, noheader=True)[0]) == [["3", "2", "1", "1", "1", "0", "0", "1"]]
    opened = ev.GpuSwitched(at=at("11:39:10"), host="ol2", gpu="GPU-1", closed=False, by="lava")
    c.feed(opened)
    assert rows(c.ask("bhosts", "ol2", o=fields, noheader=True)[0]) == [["3", "2", "1", "1", "1", "1", "1", "1"]]


def test_what_gpus_are() -> None:
    c = cluster()
    assert rows(c.ask("lshosts", "ol2", gpu=True, noheader=True)[0]) == [
        ["ol2", "0", "NVIDIAA100-SXM4-40GB", "550.54.15", "-", "0", "Nvidia"],
        ["1", "NVIDIAA100-SXM4-80GB", "550.54.15", "-", "0", "Nvidia"],
        ["2", "NVIDIAH10080GBHBM3", "550.54.15", "-", "1", "Nvidia"],
    ]
    instances = rows(c.ask("lshosts", "ol2", gpu=True, mig=True, noheader=True)[0])[2:]
    assert [row[-2:] for row in instances] == [["-", "-"], ["0", "3g.40gb"], ["1", "1g.10gb"]]


def test_how_busy_gpus_are() -> None:
    c = cluster()
    shown = rows(c.ask("lsload", "ol2", gpuload=True, w=True)[0])
    assert len(shown[0]) == 14
    first = ["ol2", "0", "NVIDIAA100-SXM4-40GB", "3.0", "58C", "2.0", "70%", "35%", "511W", "40G", "2.9G", "0", "ok", "-"]
    assert shown[1] == first
    assert shown[2][-2:] == ["closed", "lost"]
    assert shown[4][1:9] == ["2:0", "3g.40gb", "0.0", "-", "-", "-", "-", "-"]
    assert rows(c.ask("lsload", "ol2", gpu=True)[0])[1] == ["ol2", "ok", "3", "0%", "0%", "3"]
    fields = "host_name ngpus ngpus_shared ngpus_excl_p ngpus_physical gpu_temp* gpu_error1"
    assert rows(c.ask("lsload", "ol2", o=fields, noheader=True)[0]) == [
        ["ol2", "3", "2", "1", "3", "58C", "35C", "40C", "-", "-", "lost"]
    ]


def test_a_host_that_is_down_tells_nothing_of_now() -> None:
    c = cluster()
    c.feed(ev.HostDown(at=at("11:39:30"), host="ol2"))
    assert rows(c.ask("lsload", "ol2", gpuload=True)[0])[1][3:9] == ["-", "-", "-", "-", "-", "40G"]


@pytest.mark.parametrize(("select", "found"), [("ngpus>2", True), ("ngpus_excl_p>0", True), ("ngpus_physical>3", False)])
def test_counts_of_gpus_select_hosts(select: str, found: bool) -> None:
    out = cluster().ask("lsload", R=f"select[{select}]", noheader=True)[0]
    assert out.startswith("ol2") is found
