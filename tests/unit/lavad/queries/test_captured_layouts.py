"""Layouts of LSF's commands, line by line: captures of a peer (tests/support/live/captures.jsonl), with jobs made to fit.

The same captures run live in tests/compat/test_captures_live.py. Where LSF 10.1 differs from the peer, the difference is
named here, in one place: ``OVERRIDDEN`` and ``modern``.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.lang.asks import Query
from lavad.core.lang.states import TermReason
from lavad.core.plan.volatile import PartUsage, WhyClass
from tests.support.live.captured import CAPTURES
from tests.support.worlds.query_cluster import QueryCluster, at, element

QUERIES = (
    "bhist", "bhosts", "bjgroup", "bjobs", "bmgroup", "bqueues", "bugroup", "busers", "lshosts", "lsid", "lsinfo", "lsload",
)  # fmt: skip
GOLDEN = {name: row for name, row in CAPTURES.items() if row.get("command", "").split(" ")[0].strip() in QUERIES}
VALUED = {
    "bjobs": "u q m J P g N o", "bhist": "P q m J u T C S D n N", "bhosts": "R", "bqueues": "m u", "lsload": "R n I",
    "lshosts": "R",
}  # fmt: skip
OVERRIDDEN = {
    "bjobs-X": "-x is an option of LSF 10 that lava does not have: refused by name",
    "bjobs-json": "-json exists in LSF 10",
    "bjobs-V": "lava's own version", "lsid-V": "lava's own version",
    "bugroup-l": "-l exists in LSF 10",
    "bjobs-mixed": "one id is known: exit 0 (PRECEDENCE 1)",
    "bjobs-nojobs": "nothing found: exit 0 (PRECEDENCE 1)", "bjobs-noargs": "nothing found: exit 0 (PRECEDENCE 1)",
}  # fmt: skip


def read(command: str) -> Query:
    """The query that the thin command would make of a command line."""
    words = shlex.split(command.strip())
    valued = set(VALUED.get(words[0], "").split())
    options: dict[str, Any] = {}
    rest: list[str] = []
    at_word = 1
    while at_word < len(words):
        word = words[at_word]
        at_word += 1
        if not word.startswith("-"):
            rest.append(word)
        elif word[1:] in valued:
            options[word[1:]] = words[at_word]
            at_word += 1
        else:
            options[word[1:]] = True
    return Query(command=words[0], options=options, words=rest)


# fmt: off
def grown() -> QueryCluster:
    """A cluster in which every job that the captures ask about exists."""
    c = QueryCluster(max_user_priority=100)
    c.submit(103, name="hello", command="echo hi; echo err >&2; env | sort; sleep 1", priority=50,
             text={"output": "/shared/proj/jobs/outs/hello.%J.out"})
    c.start(103)
    c.finish(103, max_mem=0)
    c.submit(105, name="arr", command="env | sort", indices="1-4:2", priority=50,
             text={"output": "/shared/proj/jobs/outs/arr.%J.%I.out"})
    for index, pid in ((1, 16606), (3, 16628)):
        c.start(element(105, index), pid=pid)
        c.finish(element(105, index), "11:33:55", max_mem=0)
    c.submit(106, name="lim", command="sleep 60", indices="1-5", limit=2, priority=50)
    for index in (1, 2):
        c.start(element(106, index))
        c.finish(element(106, index), "11:34:55", max_mem=0)
    for index in (3, 4):
        c.start(element(106, index), "11:35:04", hosts="ol1")
    c.submit(107, name="par", slots=2, max_slots=2)
    c.start(107, hosts="ol2 ol1")
    c.finish(107, "11:33:57")
    c.submit(108, name="fails", command="exit 3")
    c.start(108)
    c.finish(108, "11:33:55", status=3 << 8)
    c.submit(116, name="later", held=True)
    c.submit(121, "11:33:51", name="dep", command="true", priority=50, dependency="ended(fairjob)")
    c.start(121, "11:34:44", hosts="ol1")
    c.finish(121, "11:34:49", max_mem=0)
    c.submit(122, name="held", held=True, project="proj1")
    c.submit(142, "11:34:15", name="grouped", command="sleep 30", priority=50, group="/risk/a")
    c.start(142, "11:34:44", hosts="ol1")
    c.finish(142, "11:35:15", max_mem=0)
    c.submit(353, "11:36:53", name="newname", command="sleep 5", queue="fair", priority=50, slots=2, max_slots=2,
             resreq="rusage[mem=50]", rerunnable=True, begin=at("23:50:00"), limits={"run": 600})
    c.submit(356, "11:36:53", name="prio1", command="sleep 100", queue="priority", priority=50, slots=2, max_slots=2)
    c.start(356, "11:36:56", hosts="ol2:2")
    c.submit(357, "11:36:54", name="mlim", limits={"mem": 20000}, queue="normal", priority=50,
             command='python3 -c "x=bytearray(300000000); import time; time.sleep(200)"',
             text={"output": "/shared/proj/jobs/outs/mlim.out"})
    c.submit(359, "11:39:35", name="peek")
    c.start(359, "11:39:36")
    c.finish(359, "11:39:50", status=9 << 8)
    c.submit(360, "11:39:35", name="ar", indices="1-3", queue="normal")
    for index in (1, 2, 3):
        c.start(element(360, index), "11:39:36", hosts="ol3" if index < 3 else "ol2")
    c.submit(380, "11:39:40", name="0123456789012345678901234567890", held=True)
    for job, name in ((361, "depOK"), (362, "depEl"), (364, "depCnt")):
        c.submit(job, "11:39:41", name=name)
        c.start(job, "11:39:42", hosts="ol3")
        c.finish(job, "11:39:43")
    c.submit(363, "11:39:41", name="depNever")
    c.submit(354, "11:36:53", name="pend2", command="sleep 6", begin=at("23:50:00"))
    c.submit(250, "11:35:36", name="runner", command="sleep 9")
    return c
# fmt: on


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in OVERRIDDEN])
def test_headers_and_errors_are_the_captured_ones(name: str) -> None:
    row = GOLDEN[name]
    c = grown() if name != "bhist-noargs" and name != "bhist-u" else QueryCluster()
    if name == "bjgroup-noargs":
        c = QueryCluster()
    out, err, status = c.query(read(row["command"]))
    assert status == row["exit"]
    assert err == row["stderr"]
    if "-l" in name.split("-") or "-l " in row["command"] or "UF" in name or not row["stdout"]:
        assert bool(out) == bool(row["stdout"]) or name == "bjobs-spec"
    else:
        assert out.splitlines()[0] == row["stdout"].splitlines()[0]


def test_every_overridden_capture_still_exists() -> None:
    assert set(OVERRIDDEN) <= set(GOLDEN)


def lines(name: str) -> list[str]:
    return str(GOLDEN[name]["stdout"]).splitlines()


def ask(c: QueryCluster, name: str) -> list[str]:
    return c.query(read(GOLDEN[name]["command"]))[0].splitlines()


@pytest.mark.parametrize("name", ["bjobs-J", "bjobs-P", "bjobs-array-el", "bjobs-longname", "bjobs-psusp"])
def test_short_rows_are_the_same(name: str) -> None:
    def timeless(row: str) -> str:
        return re.sub(r"Nov 20 \d\d:\d\d", "Nov 20 00:00", row)

    assert [timeless(row) for row in ask(grown(), name)] == [timeless(row) for row in lines(name)]


def test_a_parallel_job_names_one_host_a_line() -> None:
    found = ask(grown(), "bjobs-m")
    golden = lines("bjobs-m")
    at_par = next(i for i, row in enumerate(golden) if "par " in row)
    mine = next(i for i, row in enumerate(found) if "par " in row)
    assert found[mine : mine + 2] == golden[at_par : at_par + 2]


def test_wide_rows_have_the_columns_and_the_dash() -> None:
    found = ask(grown(), "bjobs-w")
    assert "106     alice   PEND  normal     ol1            -        lim[5]     Nov 20 11:33" in found
    assert "106     alice   RUN   normal     ol1         ol1         lim[4]     Nov 20 11:33" in found
    assert "106     alice   PEND  normal     ol1            -        lim[5]     Nov 20 11:33" in lines("bjobs-w")


def test_wide_with_finished_jobs_joins_hosts_with_colons() -> None:
    row = "107     alice   DONE  normal     ol1         ol2:ol1     par        Nov 20 11:33"
    assert row in lines("bjobs-wa")
    assert row in ask(grown(), "bjobs-wa")


def test_usage_columns() -> None:
    c = QueryCluster()
    c.submit(359, "11:39:35", name="peek")
    c.start(359, "11:39:36")
    usage = PartUsage(key=359, attempt=1, at=at("11:39:40"), cpu=0.01, rss=7948, swap=15480, pids=(25240, 25257, 25285))
    c.soft.usage[359] = {"ol2": usage}
    golden = GOLDEN["bjobs-W"]["stdout"].replace("EXIT", "RUN ").replace("11/20-11:40:01", "-")
    assert c.query(read("bjobs -W -a 359"))[0] == golden


@pytest.mark.parametrize(("name", "row"), [("bjobs-WL", "lim[4]"), ("bjobs-WP", "lim[4]")])
def test_time_columns_without_a_limit(name: str, row: str) -> None:
    golden = next(line for line in lines(name) if row in line)
    assert golden in ask(grown(), name)


def test_array_summary() -> None:
    c = grown()
    found = ask(c, "bjobs-A")
    assert found[0] == lines("bjobs-A")[0]
    assert next(row for row in lines("bjobs-A") if row.startswith("106")) in found
    assert ask(c, "bjobs-A-arr") == lines("bjobs-A-arr")


LEFT_OUT = re.compile(r"\n ?MEMORY USAGE:\n[^\n]*\n|\n RESOURCE REQUIREMENT DETAILS:\n(?: [CE][^\n]*\n| {21}[^\n]*\n)+")


def modern(text: str) -> str:
    """A long capture as LSF 10.1 words it: ``Job <1>``; paragraphs unwrapped and without blanks (a cut eats one)."""
    text = text.replace("\n" + " " * 21 + "MEM:", "\nMEM:").replace("\n" + " " * 21 + "PGID:", "\nPGID:")
    text = text.replace("\n" + " " * 21, "").replace("Job Id <", "Job <")
    return "\n".join(row.replace(" ", "") if row.startswith(("Job <", "Fri ")) else row for row in text.split("\n"))


def mine(text: str) -> str:
    return modern(LEFT_OUT.sub("", text))


@pytest.mark.parametrize("name", ["bjobs-l-dep", "bjobs-l-grp", "bjobs-l-lim"])
def test_long_records_are_the_same(name: str) -> None:
    found = grown().query(read(GOLDEN[name]["command"]))[0]
    assert mine(found).rstrip("\n") == modern(GOLDEN[name]["stdout"]).rstrip("\n")


def test_long_record_of_a_pending_job_with_a_run_limit() -> None:
    c = grown()
    job = c.cluster.jobs.rows[353]
    c.soft.why[job.spec] = WhyClass(((19, 1, ("ol1",)),))
    found = c.query(read("bjobs -l 353"))[0]
    assert mine(found).rstrip("\n") == modern(GOLDEN["bjobs-l-modified"]["stdout"]).rstrip("\n")


def test_long_record_of_a_running_job() -> None:
    c = grown()
    usage = PartUsage(
        key=356, attempt=1, at=at("11:37:06"), rss=6 * 1024, swap=12 * 1024, threads=3, pids=(14496, 14543, 14579),
        pgids=(14496,),
    )  # fmt: skip
    c.soft.usage[356] = {"ol2": usage}
    found = mine(c.query(read("bjobs -l 356"))[0]).replace(";  NTHREAD: 3", "")
    found = found.replace(",2ProcessorsRequested", "")
    golden = modern(GOLDEN["bjobs-l-prio"]["stdout"])
    assert re.sub(r"\n\n+", "\n\n", found).rstrip("\n") == re.sub(r"\n\n+", "\n\n", golden).rstrip("\n")


def test_unformatted_record() -> None:
    found = grown().query(read("bjobs -UF 103"))[0]
    golden = GOLDEN["bjobs-UF"]["stdout"].split(" RESOURCE REQUIREMENT DETAILS:")[0]
    assert LEFT_OUT.sub("", found).rstrip("\n") == golden.rstrip("\n")


def test_lines_are_cut_at_column_79_and_continued_at_21() -> None:
    found = grown().query(read("bhist -l 103"))[0].splitlines()
    assert max(map(len, found)) == 79
    golden = lines("bhist-l")
    assert found[3] == golden[3]
    assert found[4] == golden[4]
    assert [row for row in found if "Running" in row or "/home/alice>, Execution Pid" in row] == [
        row for row in golden if "Running" in row or "/home/alice>, Execution Pid" in row
    ]


@pytest.mark.parametrize("name", ["bhist-l", "bhist-b", "bhist-l-arr"])
def test_histories_are_the_same(name: str) -> None:
    found = grown().query(read(GOLDEN[name]["command"]))[0]
    assert modern(found) == modern(GOLDEN[name]["stdout"])


def test_history_of_a_switched_job_with_a_memory_limit() -> None:
    c = grown()
    number = c.cluster.next_spec
    from msgspec.structs import replace

    fair = replace(c.cluster.spec_of(357), queue="fair")
    c.feed(ev.SpecAdded(at=at("11:36:55"), spec=number, value=fair))
    c.feed(ev.JobSwitched(at=at("11:36:55"), key=357, spec=number, queue="fair", by="alice"))
    c.start(357, "11:36:56", pid=14502)
    c.now = at("11:38:00")
    assert modern(c.query(read("bhist -l 357"))[0]) == modern(GOLDEN["bhist-l-memlimit"]["stdout"])


def test_history_of_a_job_that_was_moved_and_changed() -> None:
    c = QueryCluster()
    c.submit(354, "11:36:53", name="pend2", command="sleep 6", begin=at("23:50:00"))
    spec = c.cluster.jobs.rows[354].spec
    c.feed(
        ev.JobModified(
            at=at("11:36:54"), key=354, spec=spec, name="pend2", by="alice", changes=("Job command changes to : sleep 9",)
        )
    )
    for place, clock in ((1, "11:36:54"), (2, "11:36:55")):
        c.feed(ev.JobMoved(at=at(clock), key=354, position=-1.0, by="alice", place=place))
    c.feed(ev.JobSwitched(at=at("11:36:55"), key=354, spec=spec, queue="fair", by="alice"))
    c.now = at("11:38:00")
    found = c.query(read("bhist -l 354"))[0]
    golden = GOLDEN["bhist-l-post"]["stdout"]
    assert modern(found) == modern(golden)
    assert found.split("Fri Nov 20 11:36:54")[1:] == golden.split("Fri Nov 20 11:36:54")[1:]


def test_history_of_a_job_killed_while_it_waited() -> None:
    c = QueryCluster()
    c.submit(250, "11:35:36", name="runner", command="sleep 9", text={"output": "/shared/proj/jobs/outs/runner.out"})
    c.feed(ev.JobHeld(at=at("11:35:39"), key=250, by="alice"), ev.JobReleased(at=at("11:35:40"), key=250, by="alice"))
    c.finish(250, "11:35:41", reason=TermReason.TERM_OWNER, by="alice")
    golden = GOLDEN["bhist-l-run"]["stdout"].partition("Fri Nov 20 11:35:39")[2]
    found = c.query(read("bhist -l 250"))[0].partition("Fri Nov 20 11:35:39")[2]
    assert found.replace("Fri Nov 20 11:35:41: Completed <exit>; TERM_OWNER: job killed by owner;\n", "") == golden


def test_history_table() -> None:
    found = ask(grown(), "bhist-a")
    golden = lines("bhist-a")
    for job in ("103", "105[1]", "105[3]", "106[1]", "106[2]"):
        assert next(row for row in found if row.startswith(job + " ")) == next(row for row in golden if row.startswith(job + " "))
    assert found[-1] == golden[-1] == ""


def idle() -> QueryCluster:
    return QueryCluster()


@pytest.mark.parametrize(
    "name",
    ["bhosts-R", "bhosts-group", "bhosts-s", "bqueues-noargs", "bqueues-m", "bugroup-noargs", "bmgroup-noargs",
     "busers-all", "busers-bad", "busers-noargs", "lshosts-R", "lshosts-l", "lshosts-s", "lsinfo-m", "lsinfo-t",
     "lsload-s"],
)  # fmt: skip
def test_tables_of_an_idle_cluster_are_the_same(name: str) -> None:
    golden = GOLDEN[name]["stdout"].replace("x86_64", "linux")
    assert idle().query(read(GOLDEN[name]["command"]))[0] == golden


@pytest.mark.parametrize("name", ["bhosts-noargs", "bhosts-w"])
def test_hosts_of_an_idle_cluster(name: str) -> None:
    assert ask(idle(), name)[:3] == lines(name)[:3]


def test_queues_that_are_closed_or_inactive() -> None:
    c = idle()
    c.submit(1, queue="night")
    c.submit(2, queue="fair")
    c.submit(3, queue="fair")
    c.feed(ev.QueueSwitched(at=at("11:39:00"), queue="night", open=False, active=True, by="openlava"))
    c.feed(ev.QueueSwitched(at=at("11:39:00"), queue="fair", open=True, active=False, by="openlava"))
    for name in ("bqueues-closed", "bqueues-inact"):
        assert c.query(read(GOLDEN[name]["command"]))[0] == GOLDEN[name]["stdout"]
    golden = GOLDEN["bqueues-l-closed"]["stdout"].replace("the OpenLava system", "the batch system")
    assert c.query(read("bqueues -l night"))[0].rstrip("\n") == golden.rstrip("\n")


def test_a_closed_host_at_length() -> None:
    c = idle()
    c.feed(ev.HostSwitched(at=at("11:33:49"), host="ol3", closed=True, by="openlava", comment="disk swap"))
    c.soft.load["ol3"] |= {"r15s": 0.2, "r1m": 0.5, "r15m": 1.0, "ut": 0.59, "tmp": 72.3 * 1024}
    found = c.query(read("bhosts -l ol3"))[0]
    golden = GOLDEN["bhosts-l-closed"]["stdout"].replace("ADMIN ACTION MESSAGE", " ADMIN ACTION COMMENT")  # the words of LSF 10.1
    assert found == golden.replace("100.00     -      1", "100.00     -      2")
    c.feed(ev.HostSwitched(at=at("11:33:50"), host="ol3", closed=False, by="openlava", comment="new disk"))
    assert c.query(read("bhosts -l ol3"))[0].endswith('\n ADMIN ACTION COMMENT: "new disk"\n')
    c.feed(ev.HostSwitched(at=at("11:33:51"), host="ol3", closed=True, by="openlava"))
    assert "ADMIN ACTION" not in c.query(read("bhosts -l ol3"))[0]


def test_load_of_hosts() -> None:
    c = idle()
    c.soft.load["ol1"]["ut"] = 0.53
    for load in c.soft.load.values():
        load["tmp"] = 72.2 * 1024
    assert ask(c, "lsload-noargs") == lines("lsload-noargs")
    c.soft.load["ol2"] |= {"r15s": 0.4}
    assert [row.split()[0] for row in ask(c, "lsload-n")] == ["HOST_NAME", "ol2", "ol1"]


def test_resources() -> None:
    found = ask(idle(), "lsinfo-r")
    assert found == lines("lsinfo-r")
