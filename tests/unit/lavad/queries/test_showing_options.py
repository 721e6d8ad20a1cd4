"""Options of the commands that show: what each adds, leaves out or says."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from config.model.guarantees import ServiceClass
from lavad.core import events as ev
from lavad.core.job.message import Message
from lavad.core.lang.gpureq import GpuReq
from lavad.core.plan.volatile import ReservedStart
from tests.support.worlds.query_cluster import QueryCluster, at
from tests.support.worlds.query_store import stored


def gpu_job() -> QueryCluster:
    c = QueryCluster(with_gpus=True)
    c.submit(1, slots=2, max_slots=2, gpu=GpuReq(num=2, mode="shared", mps="no", j_exclusive=False))
    c.start(1, hosts="ol2:2", gpus=("GPU-a", "GPU-b"))
    return c


def test_jobs_wait_eligible_and_ineligible_in_two_lists() -> None:
    c = QueryCluster()
    c.submit(1, name="ready")
    c.submit(2, name="held", held=True)
    out, err, status = c.ask("bjobs", pei=True, o="jobid", noheader=True)
    assert (out, err, status) == ("ELIGIBLE PENDING JOBS: 1\n1\n\nINELIGIBLE PENDING JOBS: 1\n2\n", "", 0)


def test_gpus_of_a_job_in_lsf_s_columns_while_it_runs_and_after(tmp_path: Path) -> None:
    c = gpu_job()
    shown = c.ask("bjobs", "1", l=True, gpu=True)[0]
    assert "\n GPU REQUIREMENT DETAILS:\n Combined: num=2:mode=shared:mps=no:j_exclusive=no\n" in shown
    rows = shown.partition("GPU_ALLOCATION:\n")[2].splitlines()
    assert rows[0].split()[:4] == ["HOST", "TASK", "GPU_ID", "GI_PLACEMENT/SIZE"]
    assert rows[1].split()[:3] == ["ol2", "0", "0"]
    assert rows[2].split()[:2] == ["1", "1"]  # the host is named once
    c.finish(1)
    with stored(c, tmp_path) as store:
        for command in ("bhist", "bacct"):
            assert rows[1] in store.ask(command, "1", l=True, gpu=True)[0], command
            assert rows[1] not in store.ask(command, "1", l=True)[0], command


def test_the_host_file_of_a_job_is_shown() -> None:
    c = QueryCluster()
    resreq = "2*{select[hname==ol1]}+1*{select[hname==ol2]}"
    c.submit(1, slots=3, max_slots=3, resreq=resreq, text={"host_file": "/home/alice/hosts"})
    c.submit(2)
    shown = c.ask("bjobs", l=True, hostfile=True)[0]
    assert shown.count("Submitted from") == 1
    assert "Host file </home/alice/hosts>" in shown.replace("\n                     ", "")
    assert "USER-SPECIFIED HOST FILE:\nHOST            SLOTS\nol1                 2\nol2                 1\n" in shown


def test_history_by_description() -> None:
    c = QueryCluster()
    c.submit(1, text={"description": "night run"})
    c.submit(2)
    assert [line.split()[0] for line in c.ask("bhist", Jd="night*")[0].splitlines()[2:] if line] == ["1"]
    assert c.ask("bhist", Lp="lic")[::2] == ("No matching job found\n", 255)


def test_accounting_of_jobs_that_ran_in_reservations(tmp_path: Path) -> None:
    c = QueryCluster()
    for job, reservation in ((1, "alice#1"), (2, "alice#2"), (3, "")):
        c.submit(job, reservation=reservation)
        c.start(job)
        c.finish(job)
    done = "Total number of done jobs: {:>7} "
    with stored(c, tmp_path) as store:
        assert done.format(1) in store.ask("bacct", U="alice#1")[0]
        assert done.format(2) in store.ask("bacct", U="all")[0]
        assert done.format(3) in store.ask("bacct")[0]


def test_bacct_of_a_service_class(tmp_path: Path) -> None:
    c = QueryCluster()
    classes = (ServiceClass(name="gold", projects=("p1",), auto_attach=True), ServiceClass(name="silver"))
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, service_classes=classes)))
    for job, project in ((1, "p1"), (2, "p2")):
        c.submit(job, project=project)
        c.start(job)
        c.finish(job)
    done = "Total number of done jobs: {:>7} "
    with stored(c, tmp_path) as store:
        out = store.ask("bacct", sla="gold")[0]
        assert done.format(1) in out
        assert "  - accounted on service classes gold, \n" in out
        assert done.format(0) in store.ask("bacct", sla="silver")[0]
        assert done.format(2) in store.ask("bacct")[0]


def test_the_image_of_a_container_and_the_fields_of_newer_releases() -> None:
    c = QueryCluster()
    c.submit(1, text={"software": (("container", "/images/x.sif", "", ""),)})
    record = json.loads(c.ask("bjobs", o="image aps longjobid k8s ctxuser", json=True)[0])["RECORDS"][0]
    assert record == {"IMAGE": "/images/x.sif", "APS": "", "LONGJOBID": "", "K8S": "", "CTXUSER": ""}


def test_history_of_jobs_to_which_something_happened_in_a_time() -> None:
    c = QueryCluster()
    c.submit(1, "11:00:00")
    c.start(1, "11:05:00")
    c.finish(1, "11:10:00")
    c.submit(2, "11:20:00")

    def jobs(time: str) -> list[str]:
        return [line.split()[0] for line in c.ask("bhist", T=time)[0].splitlines()[2:] if line]

    assert jobs("20/11:04,20/11:06") == ["1"]
    assert jobs("20/11:09,20/11:21") == ["1", "2"]
    assert c.ask("bhist", T="20/11:12,20/11:15")[::2] == ("No matching job found\n", 255)


def test_how_well_a_job_uses_what_it_has(tmp_path: Path) -> None:
    c = QueryCluster()
    c.submit(1, slots=2, max_slots=2, resreq="rusage[mem=20]")
    c.start(1, "11:30:00", hosts="ol2:2", reserved=(("mem", 20.0),))
    c.finish(1, "11:31:40", utime=140.0, stime=10.0, max_mem=10 * 1024, avg_mem=5 * 1024, cpu_peak=1.7, cpu_peak_after=30.0)
    c.submit(2)
    c.start(2, "11:30:00")
    c.finish(2, "11:31:00")
    with stored(c, tmp_path) as store:
        for command, lead in (("bjobs", " "), ("bhist", "")):
            lines = [line.removeprefix(lead) for line in store.ask(command, "1", l=True, a=True)[0].splitlines()]
            at = lines.index("MEMORY USAGE:")
            assert lines[at + 1 : at + 6] == [
                "MAX MEM: 10 Mbytes;  AVG MEM: 5 Mbytes; MEM Efficiency: 50.00%",
                "",
                "CPU USAGE:",
                "CPU PEAK: 1.70 ;  CPU PEAK DURATION: 30 second(s)",
                "CPU AVERAGE EFFICIENCY: 75.00% ;  CPU PEAK EFFICIENCY: 85.00%",
            ]
            assert "CPU USAGE" not in store.ask(command, "2", l=True, a=True)[0]  # it slept
        told = store.ask("bacct", "1", l=True)[0]
    figures = [line.split() for line in told.splitlines()]
    at = figures.index(["CPU_PEAK", "CPU_PEAK_DURATION", "CPU_PEAK_EFFICIENCY"])
    assert figures[at + 1] == ["1.70", "30", "second(s)", "85.00%"]
    assert figures[at + 2 : at + 4] == [["CPU_AVERAGE_EFFICIENCY", "MEM_EFFICIENCY"], ["75.00%", "50.00%"]]


def test_the_status_of_the_newest_job_of_a_name() -> None:
    c = QueryCluster()
    c.submit(1, "11:00:00", name="run")
    c.submit(2, "11:10:00", name="run")
    c.feed(ev.MessagePosted(at=at("11:20:00"), key=2, message=Message(number=0, text="half way", at=at("11:20:00"), by="alice")))
    out, err, status = c.ask("bstatus", J="run")
    assert (out.splitlines()[1].split()[0], err, status) == ("2", "", 0)
    assert out.rstrip().endswith("half way")
    assert c.ask("bstatus", J="nosuch")[1:] == ("Job <nosuch> is not found\n", 255)


def test_a_limit_of_nothing_is_shown() -> None:
    c = QueryCluster()
    c.submit(1, limits={"core": 0})
    assert c.ask("bjobs", o="corelimit filelimit", noheader=True)[0].split() == ["0", "Mbytes", "-"]
    assert c.ask("bjobs", o="corelimit::K", noheader=True)[0].split() == ["0K"]


def test_json_is_not_the_long_format() -> None:
    c = QueryCluster()
    c.submit(1)
    assert c.ask("bjobs", UF=True, json=True) == ("", "bjobs: -json and -UF cannot be used together\n", 255)


def test_accounts_of_a_host(tmp_path: Path) -> None:
    """One that is not known is refused, one that has left but ran jobs is not."""
    c = QueryCluster()
    c.submit(1)
    c.start(1, hosts="gone1")
    c.finish(1)
    with stored(c, tmp_path) as store:
        assert store.ask("bacct", m="nosuch") == ("", "nosuch: Bad host name, host group name or cluster name\n", 255)
        for host, done in (("gone1", 1), ("ol1", 0), ("hgA", 0), ("hgAll", 1), ("all", 1)):
            out, err, status = store.ask("bacct", m=host)
            assert (err, status) == ("", 0)
            assert f"Total number of done jobs:  {done:>5}" in out or f"done jobs:{done:>8}" in out, out


def test_messages_of_the_newest_job_of_a_name() -> None:
    c = QueryCluster()
    for job in (1, 2):
        c.submit(job, name="night")
        c.feed(
            ev.MessagePosted(
                at=at("11:35:00"), key=job, message=Message(number=1, text=f"of {job}", at=at("11:35:00"), by="alice")
            )
        )
    out, err, status = c.ask("bread", J="night")
    assert (err, status) == ("", 0)
    assert out.startswith("Messages posted to jobID 2\n")
    assert "MESSAGE: of 2\n" in out
    assert c.ask("bread", J="day")[1:] == ("Job <day> is not found\n", 255)


def test_hog_factors_are_of_normalized_cpu_time(tmp_path: Path) -> None:
    """Whether the database sums or the options need a test of each job."""
    c = QueryCluster()
    c.submit(1, "11:30:00", group="/g")
    c.start(1, "11:30:00")
    c.finish(1, "11:30:10", utime=2.0, stime=0.0)
    with stored(c, tmp_path) as store:
        for out, _, _ in (store.ask("bacct", N="3"), store.ask("bacct", N="3", g="/g")):
            assert "Total CPU time consumed:       6.0" in out
            assert "Average hog factor of a job:  0.60" in out


def test_slots_of_the_jobs_of_a_group() -> None:
    """Those that a job has, which may be more than it asked for at least."""
    c = QueryCluster()
    for job in (1, 2):
        c.submit(job, group="/g", slots=2, max_slots=4)
    c.start(1, hosts="ol2:2 ol1:2")
    assert c.ask("bjgroup", N=True)[0].splitlines()[1].split()[:4] == ["/g", "6", "2", "4"]


def test_slots_that_are_held_for_a_job_that_does_not_fit_yet() -> None:
    c = QueryCluster()
    c.submit(1, slots=5, max_slots=5)
    c.soft.promises[1] = ReservedStart(start=c.now + 60, hosts=(("ol1", 3), ("ol2", 2)), held=(("ol1", 1), ("ol2", 2)))
    for command, field, wanted in (("bhosts", "host_name", "ol1 1 ol2 2 ol3 0"), ("busers", "user", "alice 3 bob 0")):
        words = ["alice", "bob"] if command == "busers" else []
        assert " ".join(c.ask(command, *words, o=f"{field} rsv", noheader=True)[0].split()) == wanted
    rows = c.ask("bqueues", "normal", "fair", o="queue_name rsv njobs", noheader=True)[0].splitlines()
    assert list(map(str.split, rows)) == [["fair", "0", "0"], ["normal", "3", "8"]]
