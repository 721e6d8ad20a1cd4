"""Queues, limits and guarantees that contradict each other are refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.read.load import load

QUEUE = "Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = {priority}\n{line}\nEnd Queue\n"


def errors(tmp_path: Path, file: str, text: str) -> list[str]:
    (tmp_path / "lsf.conf").write_text("")
    (tmp_path / "lsf.cluster.lava").write_text(
        "Begin Host\nHOSTNAME model type server r1m mem swp RESOURCES\nh1 ! ! 1 - - - ()\nh2 ! ! 1 - - - ()\nEnd Host\n"
    )
    (tmp_path / "lsb.hosts").write_text("Begin Host\nHOST_NAME MXJ\nh1 4\nh2 4\nEnd Host\n")
    (tmp_path / "lsb.queues").write_text(QUEUE.format(name="normal", priority=30, line=""))
    (tmp_path / file).write_text(text)
    return [f"{Path(p.file).name}:{p.line}: {p.text}" for p in load(str(tmp_path)).problems if p.fatal]


def queue(line: str, priority: int = 30) -> str:
    other = QUEUE.format(name="other", priority=20, line="")
    return QUEUE.format(name="normal", priority=priority, line=line) + other


CASES = [
    ("QJOB_LIMIT = 4\nTASKLIMIT = 8 16", "lsb.queues:4: queue normal: QJOB_LIMIT 4 is less than the 8 slots"),
    ("CAPABILITY = 4\nGUARANTEE = 5", "lsb.queues:5: queue normal: GUARANTEE 5 is more than CAPABILITY 4"),
    ("CAPABILITY = gpus:4\nGUARANTEE = gpus:5", "lsb.queues:5: queue normal: GUARANTEE gpus:5 is more than CAPABILITY gpus:4"),
    ("GUARANTEE = slots:1 cards:5", "lsb.queues:4: queue normal: GUARANTEE: 'slots:1 cards:5' is not n, or slots:n gpus:n"),
    ("WEIGHT = gpus:0", "lsb.queues:4: queue normal: WEIGHT: "),
    ("GUARANTEE = 9", "lsb.queues:4: queue normal: GUARANTEE 9: with those before it 9 slots of 8 are guaranteed"),
    ("GANG = N\nSLOT_RESERVE = MAX_RESERVE_TIME[5]", "lsb.queues:4: queue normal: GANG=N and SLOT_RESERVE"),
    (
        "BACKFILL = Y\nINTERRUPTIBLE_BACKFILL = 60",
        "lsb.queues:5: queue normal: INTERRUPTIBLE_BACKFILL needs BACKFILL=Y and RUNLIMIT",
    ),
    (
        "RUNLIMIT = 10\nINTERRUPTIBLE_BACKFILL = 60",
        "lsb.queues:5: queue normal: INTERRUPTIBLE_BACKFILL needs BACKFILL=Y and RUNLI",
    ),
    ("EXTENDABLE_RUNLIMIT = INCREMENT[5]", "lsb.queues:4: queue normal: EXTENDABLE_RUNLIMIT: 'INCREMENT[5]' is not BASE["),
    ("EXTENDABLE_RUNLIMIT = BASE[x]", "lsb.queues:4: queue normal: EXTENDABLE_RUNLIMIT: 'BASE[x]' is not BASE[minutes]"),
    ("EXTENDABLE_RUNLIMIT = BASE[5] REQUEUE[maybe]", "lsb.queues:4: queue normal: EXTENDABLE_RUNLIMIT: 'BASE[5] REQUEUE["),
    ("EXTENDABLE_RUNLIMIT = BASE[0]", "lsb.queues:4: queue normal: EXTENDABLE_RUNLIMIT: 'BASE[0]': BASE and INCREMENT are one"),
    ("RESRSV_LIMIT = mem=5", "lsb.queues:4: queue normal: RESRSV_LIMIT: 'mem=5' is not [resource=min,max]"),
    ("RESRSV_LIMIT = [mem=5,4]", "lsb.queues:4: queue normal: RESRSV_LIMIT: mem: 5 is more than 4"),
    ("INTERRUPTIBLE_BACKFILL = 0", "lsb.queues:4: queue normal: INTERRUPTIBLE_BACKFILL: "),
    ("RUN_WINDOW = 8:00-10:00\nDISPATCH_WINDOW = 10:00-12:00", "lsb.queues:5: queue normal: DISPATCH_WINDOW is never open"),
    ("PREEMPTION = PREEMPTABLE[other]", "lsb.queues:4: queue normal: PREEMPTION: queue other has no higher PRIORITY"),
]


@pytest.mark.parametrize(("line", "said"), CASES, ids=[case[0].partition(" ")[0] for case in CASES])
def test_a_queue_that_contradicts_itself_or_another(tmp_path: Path, line: str, said: str) -> None:
    found = errors(tmp_path, "lsb.queues", queue(line))
    assert len(found) == 1
    assert found[0].startswith(said)


@pytest.mark.parametrize(
    "line",
    [
        "RUN_WINDOW = 22:00-6:00\nDISPATCH_WINDOW = 5:00-7:00",
        "RUN_WINDOW = 5:20:00-1:8:00\nDISPATCH_WINDOW = 6:8:00-6:9:00",
        "GUARANTEE = 8",
        "GUARANTEE = slots:8 gpus:100",
        "WEIGHT = gpus:3",
        "QJOB_LIMIT = 8\nTASKLIMIT = 8",
        "PREEMPTION = PREEMPTIVE[other]",
    ],
)
def test_what_only_looks_like_one(tmp_path: Path, line: str) -> None:
    assert errors(tmp_path, "lsb.queues", queue(line)) == []


def test_limits_of_what_is_not_there(tmp_path: Path) -> None:
    text = "Begin Limit\nNAME = l1\nQUEUES = nosuch\nHOSTS = h9\nUSERS = ann ~ann\nSLOTS = 2\nEnd Limit\n"
    assert [line.partition(": ")[2] for line in errors(tmp_path, "lsb.resources", text)] == [
        "limit l1: QUEUES: no queue nosuch in lsb.queues",
        "limit l1: HOSTS: unknown host or host group h9",
        "limit l1: USERS: ann is counted in and out",
    ]


def test_resources_that_no_job_reserves_cannot_be_preempted_for(tmp_path: Path) -> None:
    text = "Begin Parameters\nPREEMPTABLE_RESOURCES = {}\nEnd Parameters\n"
    assert errors(tmp_path, "lsb.params", text.format("ngpus_physical mem")) == []
    said = errors(tmp_path, "lsb.params", text.format("ngpus_physical lic"))
    assert said == ["lsb.params:2: PREEMPTABLE_RESOURCES: lic is nothing that jobs reserve"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("lsb.queues", queue("RUNLIMIT = 10/nosuch"), ["lsb.queues:2: queue normal: nosuch is no host and no model"]),
        ("lsb.queues", queue("DEFAULT_HOST_SPEC = nosuch"), ["lsb.queues:4: queue normal: nosuch is no host and no model"]),
        (
            "lsb.params",
            "Begin Parameters\nDEFAULT_HOST_SPEC = no\nEnd Parameters\n",
            ["lsb.params:2: no is no host and no model"],
        ),
        ("lsb.queues", queue("DEFAULT_HOST_SPEC = both"), ["lsb.queues:4: queue normal: both is no host and no model"]),
        ("lsb.queues", queue("RUNLIMIT = 10/h2"), []),
        (
            "lsb.applications",
            "Begin Application\nNAME = a\nCPULIMIT = 10/nosuch\nEnd Application\n"
            "Begin Application\nNAME = b\nRUNLIMIT = 10/h2\nEnd Application\n",
            ["lsb.applications:2: application a: nosuch is no host and no model"],
        ),
        ("lsb.queues", queue("DEFAULT_HOST_SPEC = fast"), []),
    ],
)
def test_what_times_are_given_for_is_a_host_or_a_model(tmp_path: Path, file: str, text: str, said: list[str]) -> None:
    (tmp_path / "lsf.shared").write_text("Begin HostModel\nMODELNAME CPUFACTOR\nfast 2.0\nEnd HostModel\n")
    assert errors(tmp_path, file, text) == []
    with (tmp_path / "lsb.hosts").open("a") as hosts:
        hosts.write("Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nboth (h1 h2)\nEnd HostGroup\n")
    told = [f"{Path(p.file).name}:{p.line}: {p.text}" for p in load(str(tmp_path)).problems if "no model" in p.text]
    assert [line.partition(": times")[0] for line in told] == said
