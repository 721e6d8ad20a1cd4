"""lava stats: what jobs asked for and used, on each host and of each GPU, and arrays element by element."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.job.gpu_use import GpuUse
from lavad.core.lang.asks import Caller
from lavad.core.plan.volatile import PartUsage, SoftUpdate, update
from tests.support.worlds.query_cluster import QueryCluster, at, element

GB = 1 << 20


def test_a_job_that_has_ended() -> None:
    c = QueryCluster(with_gpus=True, abs_runlimit=True)
    c.submit(1, name="solve", slots=4, max_slots=4, limits={"run": 7200})
    c.start(1, "11:00:00", hosts="ol2:2 ol1:2", reserved=(("mem", 8192.0),), gpus=("GPU-b",))
    use = GpuUse(uuid="GPU-b", index=1, held=600.0, known=600.0, used=150.0, idle=30.0, max_mem=2048, energy=9e4)
    c.finish(1, "11:10:00", utime=550.0, stime=50.0, max_mem=GB, gpus=(use,))
    assert c.ask("stats", "1") == (
        "Job <1>, Job Name <solve>, User <alice>, Queue <normal>: DONE, ran 00:10:00 on 2 hosts\n"
        "\n                ASKED       USED   SHARE\n"
        "Slots               4        2.0     50%  [||||||||||          ]\n"
        "GPUs                2        0.5     25%  [|||||               ]\n"
        "Memory          16 GB       2 GB     12%  [||                  ]\n"
        "Run time     02:00:00   00:10:00      8%  [||                  ]\n"
        "\nHOST             SLOTS   CPU_TIME    CPU   PEAK_MEM  ASKED_MEM\n"
        "ol2                  2     600.0s    50%       1 GB       8 GB\n"
        "ol1                  2     600.0s    50%       1 GB       8 GB\n"
        "\nHOST             GPU   USE   IDLE   PEAK_MEM     ENERGY\n"
        "ol2                1   25%     5%       2 GB    90.0 kJ\n"
        "ol1                1   25%     5%       2 GB    90.0 kJ\n"
        "\nAdvice: it used 2 GB of the 16 GB of memory that it reserved: 3GB are enough.\n",
        "",
        0,
    )


def test_a_job_that_runs_is_shown_as_its_hosts_report() -> None:
    c = QueryCluster()
    c.submit(1, slots=8, max_slots=8)
    c.start(1, "11:30:00", hosts="ol2:8")
    update(c.soft, SoftUpdate(usage=[("ol2", PartUsage(key=1, attempt=1, at=at("11:39:50"), cpu=600.0, rss=GB))]))
    out = c.ask("stats", "1")[0]
    assert ": RUN, ran 00:10:00 on 1 host\n" in out
    assert "Slots               8        1.0     12%  [||                  ]\n" in out
    assert "\nAdvice: it used 1.0 of its 8 slots: ask for -n 2, or let the program use them.\n" in out
    assert "\n ADVICE: it used 1.0 of its 8 slots: ask for -n 2, or let the program use them\n" in c.ask("bjobs", "1", l=True)[0]


def test_a_job_that_has_run_before_says_so() -> None:
    c = QueryCluster()
    c.submit(1)
    assert c.ask("stats", "1")[0] == "Job <1>, User <alice>, Queue <normal>: PEND, it has not run\n"
    c.start(1)
    c.feed(ev.JobRequeued(at=at("11:35:00"), key=1))
    c.start(1, "11:36:00")
    assert "\nIt has been started 2 times; this is its newest attempt\n" in c.ask("stats", "1")[0]


def test_an_array_has_a_line_for_each_element_and_their_sum() -> None:
    c = QueryCluster()
    c.submit(1, indices="1-3", slots=4, max_slots=4)
    for index, cpu in ((1, 1200.0), (2, 120.0)):
        c.start(element(1, index), "11:00:00", hosts="ol2:4")
        c.finish(element(1, index), "11:10:00", utime=cpu, stime=0.0)
    out, err, code = c.ask("stats", "1")
    assert (err, code) == ("", 0)
    lines = [line.split() for line in out.splitlines()]
    assert ["1[1]", "DONE", "1", "4", "00:10:00", "-", "50%", "-", "-", "6", "MB"] in lines
    assert ["1[2]", "DONE", "1", "4", "00:10:00", "-", "5%", "-", "-", "6", "MB"] in lines
    assert ["ALL", "00:20:00", "-", "28%", "-", "-"] in lines
    assert "\n2 of 3 elements have run\n" in out
    assert "\nAdvice (1 of 2 elements): it used 0.2 of its 4 slots: ask for -n 1, or let the program use them.\n" in out
    assert c.ask("stats", "1[1]")[0].startswith("Job <1[1]>")


def test_what_cannot_be_shown_is_refused() -> None:
    c = QueryCluster(secure_job_info_level=4)
    c.submit(1)
    assert c.ask("stats") == ("", "lava stats: name a job\n", 255)
    assert c.ask("stats", "9") == ("", "Job <9> is not found\n", 255)
    assert c.ask("stats", "1", caller=Caller(user="bob", uid=1002, host="ol1"))[1:] == ("Job <1> is not found\n", 255)
