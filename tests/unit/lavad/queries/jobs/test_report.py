"""lava report: tables and CSV by user, project and queue, and whose jobs are in them."""

from __future__ import annotations

import csv
import io
import random
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import End, Placed
from lavad.core.lang.asks import Caller
from lavad.core.lang.states import JobState
from lavad.queries.facts import jobfacts
from lavad.store.asked import Asked
from tests.support.worlds.query_cluster import QueryCluster, at, element
from tests.support.worlds.query_store import stored

TIMES = ["0", "00:30:00", "00:30:00"]
"""Exited, mean and longest wait."""
BOB = Caller(user="bob", uid=1002, host="ol1")


def cluster() -> QueryCluster:
    """Alice and bob ran a job each, of one project; bob's held a GPU for 30 min, a third of the time idle."""
    c = QueryCluster(with_gpus=True)
    for key, user, gpus in ((1, "alice", ()), (2, "bob", ("GPU-b",))):
        c.submit(key, "10:30:00", user=user, project="p")
        c.start(key, "11:00:00", hosts="ol2", gpus=gpus)
    c.finish(1, "11:30:00", utime=900.0, stime=0.0)
    use = GpuUse(uuid="GPU-b", held=1800.0, known=1800.0, used=900.0, idle=600.0, energy=7.2e6)
    c.finish(2, "11:30:00", utime=0.0, stime=0.0, gpus=(use,))
    return c


def test_tables_have_a_line_for_each_and_their_sum() -> None:
    out, err, status = cluster().ask("report", by="user")
    assert (err, status) == ("", 0)
    assert [line.split() for line in out.splitlines()[3:]] == [
        ["alice", "1", "0.50", "0.25", "50%", "0", "0.00", "0.00", "0.00", "-", "0.000", "0.00", "0.00", *TIMES],
        ["bob", "1", "0.50", "0.00", "100%", "1", "0.50", "0.25", "0.17", "33%", "2.000", "0.00", "0.00", *TIMES],
        ["TOTAL", "2", "1.00", "0.25", "75%", "1", "0.50", "0.25", "0.17", "33%", "2.000", "0.00", "0.00", *TIMES],
    ]


def test_csv_has_all_groups_and_no_sums() -> None:
    lines = cluster().ask("report", csv=True)[0].splitlines()
    assert lines[0].startswith("by,name,jobs,slot_hours,cpu_hours,gpu_jobs,gpu_hours,")
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["user", "alice", "1"],
        ["user", "bob", "1"],
        ["project", "p", "2"],
        ["queue", "normal", "2"],
    ]
    assert lines[3].endswith(",1,0.5000,0.2500,0.1667,2.0000,0.0000,0.0000,0,0.7500,0.5000,0.5000")


@pytest.mark.parametrize(("access", "total"), [("N", "2"), ("G", "1")])
def test_users_see_their_own_where_history_is_restricted(access: str, total: str) -> None:
    c = cluster()
    params = replace(c.cluster.conf.params, secure_job_info_level=4, secure_infodir_user_access=access)
    c.feed(ev.Configured(at=at("11:32:00"), conf=replace(c.cluster.conf, params=params)))
    assert c.ask("report", caller=BOB, by="queue")[0].splitlines()[-1].split()[:2] == ["TOTAL", total]
    refused = c.ask("report", caller=BOB, user="alice")
    assert (refused[1:] == ("User permission denied\n", 255)) is (access == "G")


def test_groups_have_the_jobs_of_their_members_and_the_site_has_all() -> None:
    c = cluster()
    lines = [line.split()[:3] for line in c.ask("report", by="group")[0].splitlines()[3:]]
    assert lines == [["ugA", "2", "1.00"], ["ugB", "1", "0.50"], ["TOTAL", "2", "1.00"]]
    assert c.ask("report", by="site")[0].splitlines()[3].split()[:3] == ["openlava", "2", "1.00"]
    assert c.ask("report", group="ugB", by="user")[0].splitlines()[-1].split()[:2] == ["TOTAL", "1"]
    groups = (("most", ("all", "~bob")), ("every", ("all",)))
    c.feed(ev.Configured(at=at("11:32:00"), conf=replace(c.cluster.conf, user_groups=groups)))
    totals = {group: c.ask("report", group=group, by="user")[0].splitlines()[-1].split()[:2] for group, _ in groups}
    assert totals == {"most": ["TOTAL", "1"], "every": ["TOTAL", "2"]}
    assert c.ask("report", group="most", user="bob", by="user")[0].splitlines()[-1].split()[:2] == ["TOTAL", "2"]
    assert c.ask("report", group="ugX")[1:] == ("ugX: No such user group\n", 255)


def test_the_jobs_that_wasted_the_most_come_first() -> None:
    out = cluster().ask("report", by="site", top="1")[0]
    lines = [line.split() for line in out.splitlines()[6:]]
    assert lines[1][:2] == ["2", "bob"]
    assert lines[4][:2] == ["2", "bob"]
    assert [row[4:] for row in (lines[0], lines[3])] == [
        ["SLOT_HOURS", "SLOT_WASTE", "JOB_NAME"],
        ["GPU_HOURS", "GPU_WASTE", "JOB_NAME"],
    ]
    assert cluster().ask("report", top="none")[1] == "lava report: --top none: must be 1 to 1000\n"


class Page(HTMLParser):
    """Whether all that is opened is closed, what stands in it, and whether it needs anything else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href", "onload"} & {name for name, _ in attrs}
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_needs_nothing_else_and_no_name_is_markup_in_it() -> None:
    c = cluster()
    c.submit(3, "10:30:00", project="<script>alert(1)</script>", name="<b>bold")
    c.start(3, "11:00:00", hosts="ol1")
    c.finish(3, "11:20:00")
    out, err, code = c.ask("report", html=True)
    assert (err, code) == ("", 0)
    assert "script>" not in out.replace("&lt;script&gt;", "").replace("&lt;/script&gt;", "")
    page = Page(out)
    assert page.open == []
    assert "script" not in page.tags
    assert page.tags.count("svg") == 3 + 4
    assert "<script>alert(1)</script>" in page.words
    assert any(word.startswith("Jobs that wasted the most GPU hours") for word in page.words)


def history(seed: int) -> QueryCluster:
    """Jobs and array elements of two users that run, some again, some with GPUs, some growing; half of them fail."""
    chosen = random.Random(seed)
    c = QueryCluster(with_gpus=True)
    clock = at("08:00:00")
    for job in range(1, 13):
        user, queue = chosen.choice(["alice", "bob"]), chosen.choice(["normal", "fair"])
        indices = "1-3" if chosen.random() < 0.3 else ""
        c.submit(job, "08:00:00", user=user, queue=queue, project=chosen.choice(["p", "q"]), indices=indices)
        for key in [element(job, index) for index in (1, 2, 3)] if indices else [job]:
            for again in range(chosen.choice([1, 1, 2])):
                clock += chosen.randrange(1, 600)
                gpus = ("GPU-a",) if chosen.random() < 0.4 else ()
                row = c.cluster.jobs.rows.get(key)
                number = row.attempt + 1 if row is not None else 1
                parts = (Placed("ol2", chosen.randrange(1, 4), gpus=gpus),)
                c.feed(ev.JobDispatched(at=clock, key=key, attempt=number, uid=f"u{key}-{number}", parts=parts))
                c.feed(ev.PartStarted(at=clock, key=key, attempt=number, host="ol2", pid=7, started=clock))
                begun, clock = clock, clock + chosen.randrange(1, 4000)
                if chosen.random() < 0.3:
                    c.feed(ev.JobGrew(at=(begun + clock) / 2, key=key, attempt=number, number=1, parts=(Placed("ol1", 2),)))
                ran = clock - begun
                use = tuple(GpuUse(uuid=one, held=ran, known=ran, used=ran / 3, idle=ran / 4, energy=ran) for one in gpus)
                status = chosen.choice([0, 256])
                end = End(status=status, at=clock, started=begun, utime=ran * chosen.choice([3.0, chosen.random()]), gpus=use)
                for part in c.cluster.jobs.rows[key].run.parts:
                    own = end if part.host == "ol2" else replace(end, gpus=())
                    c.feed(ev.PartEnded(at=clock, key=key, attempt=number, host=part.host, end=own))
                    c.feed(ev.PartGone(at=clock, key=key, attempt=number, host=part.host))
                if again == 0 and chosen.random() < 0.3:
                    c.feed(ev.JobRequeued(at=clock, key=key))
                    continue
                state = JobState.EXIT if status else JobState.DONE
                c.feed(ev.JobFinished(at=clock, key=key, state=state, status=status))
                break
    c.now = clock + 60
    return c


@pytest.mark.parametrize("seed", range(6))
def test_the_sums_are_those_of_bacct_and_of_the_jobs_themselves(seed: int, tmp_path: Path) -> None:
    """Arrays, requeued, resized and failed jobs; by user, project, queue, at the site, and in pieces of time."""
    with stored(history(seed), tmp_path) as store:
        reader = store.view.reader
        sums, jobs = reader.sums(Asked()), [job for page in reader.pages(Asked()) for job in page]
        assert len(jobs) == sums.done + sums.exited > 5
        assert sums.cpu[0] == pytest.approx(sum(jobfacts.cpu_time(job) for job in jobs))
        rows = list(csv.DictReader(io.StringIO(store.ask("report", csv=True)[0])))
        rows += csv.DictReader(io.StringIO(store.ask("report", csv=True, by="site")[0]))
        for by in ("user", "project", "queue", "site"):
            mine = [row for row in rows if row["by"] == by]
            assert sum(int(row["jobs"]) for row in mine) == sums.done + sums.exited
            assert sum(int(row["exited"]) for row in mine) == sums.exited
            for name, whole in (
                ("cpu", sums.cpu[0]),
                ("gpu", sums.gpus.held),
                ("gpu_used", sums.gpus.used),
                ("gpu_idle", sums.gpus.idle),
            ):
                assert sum(float(row[f"{name}_hours"]) for row in mine) == pytest.approx(whole / 3600, abs=0.001)
            waits = sum(float(row["mean_wait_hours"]) * int(row["jobs"]) for row in mine)
            assert waits == pytest.approx(sums.wait[0] / 3600, abs=0.01)
            wasted = sum(float(row["slot_waste_hours"]) for row in mine)
            assert wasted == pytest.approx(sum(row.wasted for row in reader.wasteful(Asked(), 99, False)) / 3600, abs=0.001)
        middle = (sums.begin + sums.end) / 2
        pieces = [reader.shares(Asked(completed=window)) for window in ((0.0, middle - 1e-6), (middle, sums.end))]
        assert sum(share.jobs for piece in pieces for share in piece) == len(jobs)
        assert "Total number of done jobs:" in store.ask("bacct", u="all")[0]
