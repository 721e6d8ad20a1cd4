"""Each parameter of a Limit section of lsb.resources, from the text of the file to who runs and who waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core.site.pend_reason import LIMIT_JOBS, LIMIT_RESOURCE, LIMIT_SLOTS, text
from tests.support.worlds.site_world import read_site, site_world

FILES = {
    "lsb__queues": "Begin Queue\nQUEUE_NAME=day\nEnd Queue\nBegin Queue\nQUEUE_NAME=night\nEnd Queue\n",
    "lsb__users": "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ndev (ann bob)\nEnd UserGroup\n",
    "lsb__hosts": "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nrack (h1 h2)\nEnd HostGroup\n",
    "lsb__applications": "Begin Application\nNAME=sim\nEnd Application\nBegin Application\nNAME=cad\nEnd Application\n",
}
ANN, BOB, EVE = {"user": "ann"}, {"user": "bob"}, {"user": "eve"}
DAY, NIGHT = {"queue": "day"}, {"queue": "night"}
P1, P2 = {"project": "p1"}, {"project": "p2"}
SIM, CAD = {"app": "sim"}, {"app": "cad"}


def mem(amount: int) -> dict[str, str]:
    return {"resreq": f"rusage[mem={amount}]"}


TABLE = {
    # lines of the section: the jobs in their order (h1, h2 and h3 have 4 slots and 16 GB), and which of them start
    "SLOTS": ("SLOTS=2", [ANN, BOB, EVE], [0, 1]),
    "JOBS": ("JOBS=1", [ANN, BOB], [0]),
    "USERS a user": ("USERS=ann\nSLOTS=1", [ANN, ANN, BOB, BOB], [0, 2, 3]),
    "USERS a group is one": ("USERS=dev\nSLOTS=1", [ANN, BOB, EVE, EVE], [0, 2, 3]),
    "USERS but one": ("USERS=all ~eve\nSLOTS=1", [ANN, BOB, EVE, EVE], [0, 2, 3]),
    "USERS but a group": ("USERS=all ~dev\nSLOTS=1", [ANN, BOB, EVE, EVE], [0, 1, 2]),
    "PER_USER": ("PER_USER=all\nSLOTS=1", [ANN, ANN, BOB, BOB], [0, 2]),
    "PER_USER but one": ("PER_USER=all ~ann\nSLOTS=1", [ANN, ANN, BOB, BOB], [0, 1, 2]),
    "PER_USER of a group": ("PER_USER=dev\nSLOTS=1", [ANN, BOB, BOB, EVE, EVE], [0, 1, 3, 4]),
    "QUEUES": ("QUEUES=day\nSLOTS=1", [DAY, DAY, NIGHT, NIGHT], [0, 2, 3]),
    "QUEUES but one": ("QUEUES=all ~night\nSLOTS=1", [DAY, DAY, NIGHT, NIGHT], [0, 2, 3]),
    "QUEUES are one": ("QUEUES=day night\nSLOTS=1", [DAY, NIGHT], [0]),
    "PER_QUEUE": ("PER_QUEUE=all\nSLOTS=1", [DAY, DAY, NIGHT, NIGHT], [0, 2]),
    "PROJECTS": ("PROJECTS=p1\nJOBS=1", [P1, P1, P2, P2], [0, 2, 3]),
    "PROJECTS but one": ("PROJECTS=all ~p2\nJOBS=1", [P1, P1, P2, P2], [0, 2, 3]),
    "PER_PROJECT": ("PER_PROJECT=all\nJOBS=1", [P1, P1, P2, P2], [0, 2]),
    "APPS": ("APPS=sim\nSLOTS=1", [SIM, SIM, CAD, CAD, ANN], [0, 2, 3, 4]),
    "PER_APP": ("PER_APP=all\nSLOTS=1", [SIM, SIM, CAD, CAD, ANN, ANN], [0, 2, 4, 5]),
    "HOSTS are one": ("HOSTS=h1 h2 h3\nSLOTS=2", [ANN, ANN, ANN], [0, 1]),
    "HOSTS a group": ("HOSTS=rack\nSLOTS=1", [ANN] * 6, [0, 1, 2, 3, 4]),
    "HOSTS but one": ("HOSTS=all ~h3\nSLOTS=1", [ANN] * 6, [0, 1, 2, 3, 4]),
    "PER_HOST": ("PER_HOST=all\nSLOTS=1", [ANN] * 4, [0, 1, 2]),
    "PER_HOST of a group": ("PER_HOST=rack\nSLOTS=1", [ANN] * 7, [0, 1, 2, 3, 4, 5]),
    "SLOTS_PER_PROCESSOR": ("PER_HOST=all\nSLOTS_PER_PROCESSOR=0.5", [ANN] * 7, [0, 1, 2, 3, 4, 5]),
    "MEM": ("MEM=5000", [mem(3000), mem(3000), mem(2000), ANN], [0, 2, 3]),
    "MEM with a unit": ("MEM=4G", [mem(4096), mem(1)], [0]),
    "MEM a host": ("PER_HOST=all\nMEM=5000", [mem(3000)] * 4, [0, 1, 2]),
    "MEM in percent": ("PER_HOST=all\nMEM=50%", [mem(6000)] * 4, [0, 1, 2]),
    "SWP": ("SWP=4000", [{"resreq": "rusage[swp=3000]"}] * 2, [0]),
    "TMP": ("TMP=4000", [{"resreq": "rusage[tmp=3000]"}] * 2, [0]),
    "TMP in percent": ("PER_HOST=all\nTMP=10%", [{"resreq": "rusage[tmp=1000]"}] * 4, [0, 1, 2]),
    "RESOURCE": ("RESOURCE=[tmp, 4000] [mem, 9000]", [{"resreq": "rusage[tmp=3000]"}, mem(9000), mem(1)], [0, 1]),
    "two conditions": ("PER_USER=all\nQUEUES=day\nJOBS=1", [ANN | DAY, ANN | DAY, ANN | NIGHT, BOB | DAY], [0, 2, 3]),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_parameter_of_a_limit(name: str, tmp_path: Path) -> None:
    lines, jobs, expected = TABLE[name]
    world = site_world(tmp_path, **FILES, lsb__resources=f"Begin Limit\nNAME = one\n{lines}\nEnd Limit\n")
    world.hosts("h1", "h2", "h3", slots=4)
    keys = [world.submit(f"job{at}", **{"user": "ann", **fields}) for at, fields in enumerate(jobs)]  # type: ignore[arg-type]
    started = world.step()
    assert [at for at, key in enumerate(keys) if key in started] == expected
    assert world.step() == {}
    reasons = {code for key in keys if key not in started for code, _ in world.why(key)}
    assert reasons & {LIMIT_SLOTS, LIMIT_JOBS, LIMIT_RESOURCE}, "its name is told to whoever waits"
    for key in started:
        world.finish(key)
    assert world.step(), "the next ones start when those are over"


def gpu(requirement: str, **fields: object) -> dict[str, object]:
    return {"gpu": requirement, **fields}


ONE, TWO, ALONE = gpu("num=1"), gpu("num=2"), gpu("num=1:mode=exclusive_process")
GPU_TABLE: dict[str, tuple[str, list[dict[str, Any]], list[int]]] = {
    # as above; each of h1, h2 and h3 has 4 GPUs
    "GPUs": ("RESOURCE=[ngpus_physical, 3]", [TWO, TWO, ONE, ONE, ANN], [0, 2, 4]),
    "ngpus is the same": ("RESOURCE=[ngpus, 3]", [TWO, TWO, ONE, ONE, ANN], [0, 2, 4]),
    "GPUs that are shared": ("RESOURCE=[ngpus_shared, 1]", [ONE, ONE, ALONE, ALONE], [0, 2, 3]),
    "GPUs that are not shared": ("RESOURCE=[ngpus_excl_p, 1]", [ONE, ONE, ALONE, ALONE], [0, 1, 2]),
    "a GPU counts for each job on it": ("HOSTS=h1\nRESOURCE=[ngpus_physical, 2]", [gpu("num=1", hosts=("h1",))] * 3, [0, 1]),
    "memory of GPUs": (
        "RESOURCE=[gmem, 5000]",
        [gpu("num=2:gmem=2000"), gpu("num=1:gmem=2000"), gpu("num=1:gmem=1000"), ONE],
        [0, 2, 3],
    ),
    "GPUs of each user": (
        "PER_USER=all\nRESOURCE=[ngpus_physical, 2]",
        [ONE | ANN, TWO | ANN, ONE | ANN, TWO | BOB, ONE | BOB],
        [0, 2, 3],
    ),
    "GPUs of a group": ("USERS=dev\nRESOURCE=[ngpus_physical, 2]", [ONE | ANN, TWO | BOB, ONE | BOB, TWO | EVE], [0, 2, 3]),
    "GPUs of a queue": ("QUEUES=day\nRESOURCE=[ngpus_physical, 1]", [ONE | DAY, ONE | DAY, TWO | NIGHT], [0, 2]),
    "GPUs of each queue": (
        "PER_QUEUE=all\nRESOURCE=[ngpus_physical, 1]",
        [ONE | DAY, ONE | DAY, TWO | NIGHT, ONE | NIGHT],
        [0, 3],
    ),
    "GPUs of each project": (
        "PER_PROJECT=all\nRESOURCE=[ngpus_physical, 1]",
        [ONE | P1, ONE | P1, ONE | P2, TWO | P2],
        [0, 2],
    ),
    "GPUs of each profile": ("PER_APP=all\nRESOURCE=[ngpus_physical, 1]", [ONE | SIM, ONE | SIM, ONE | CAD, ONE], [0, 2, 3]),
    "GPUs of each host": ("PER_HOST=all\nRESOURCE=[ngpus_physical, 1]", [ONE] * 4, [0, 1, 2]),
    "more GPUs than a host may have in use": ("PER_HOST=all\nRESOURCE=[ngpus_physical, 1]", [TWO, ONE], [1]),
    "GPUs of some hosts": ("HOSTS=rack\nRESOURCE=[ngpus_physical, 2]", [ONE] * 7, [0, 1, 2, 3, 4, 5]),
    "GPUs of tasks on each host": (
        "PER_HOST=all\nRESOURCE=[ngpus_physical, 2]",
        [gpu("num=1/task", slots=6, max_slots=6), ONE],
        [0],
    ),
    "GPUs and slots": ("QUEUES=day\nSLOTS=4\nRESOURCE=[ngpus_physical, 1]", [ONE | DAY, ONE | DAY, DAY, DAY], [0, 2, 3]),
}


@pytest.mark.parametrize("name", GPU_TABLE)
def test_a_limit_on_gpus(name: str, tmp_path: Path) -> None:
    lines, jobs, expected = GPU_TABLE[name]
    world = site_world(tmp_path, **FILES, lsb__resources=f"Begin Limit\nNAME = cards\n{lines}\nEnd Limit\n")
    world.hosts("h1", "h2", "h3", slots=4, gpus=4)
    keys = [world.submit(f"job{at}", **{"user": "ann", **fields}) for at, fields in enumerate(jobs)]
    started = world.step()
    assert [at for at, key in enumerate(keys) if key in started] == expected
    assert world.step() == {}
    reasons = {code for key in keys if key not in started for code, _ in world.why(key)}
    assert LIMIT_RESOURCE in reasons, "its name is told to whoever waits"


def test_a_plan_that_breaks_a_limit_on_gpus_is_not_accepted(tmp_path: Path) -> None:
    limit = "Begin Limit\nNAME = cards\nPER_USER = all\nRESOURCE = [ngpus_physical, 1]\nEnd Limit\n"
    world = site_world(tmp_path, **FILES, lsb__resources=limit)
    world.hosts("h1", slots=4, gpus=4)
    first, second = world.submit(user="ann", gpu="num=1"), world.submit(user="ann", gpu="num=1")
    plan = world.schedule()
    assert [placement.key for placement in plan.placements] == [first]
    greedy = replace(plan, placements=(*plan.placements, replace(plan.placements[0], key=second)))
    world.accept(greedy)
    assert world.cluster.jobs.rows[second].run is None
    assert text(LIMIT_RESOURCE, world.cluster.conf) == (
        "Resource (ngpus_physical) limit defined on user(s) and/or user group has been reached"
        " (Limit Name: cards, Limit Value: 1)"
    )


def test_the_table_of_lines_with_empty_cells(tmp_path: Path) -> None:
    text = (
        "begin LIMIT\nNAME  USERS   QUEUES  PER_HOST  SLOTS  MEM  JOBS\r\n"
        "few   (ann bob)  day   ()  2   -   ()   # a remark\n"
        "()    eve     -    all     -   \t4G   1\nEND limit\n"
    )
    world = site_world(tmp_path, **FILES, lsb__resources=text)
    few, other = world.cluster.conf.limits
    assert (few.users, few.queues, few.per_host, few.slots, few.mem, few.jobs) == (("ann", "bob"), ("day",), False, 2, None, None)
    assert (other.name, other.users, other.hosts, other.per_host, other.mem, other.jobs) == (
        "limit2",
        ("eve",),
        ("all",),
        True,
        4096.0,
        1,
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("USERS=ann\nPER_USER=all\nSLOTS=1", "lsb.resources:2: limit one: USERS and PER_USER exclude each other"),
        ("USERS=ann\nSLOTS_PER_PROCESSOR=1", "lsb.resources:2: limit one: SLOTS_PER_PROCESSOR needs PER_HOST"),
        ("MEM=10%", "lsb.resources:3: limit one: a percentage needs PER_HOST: this limit has no effect"),
        ("USERS=ann\nINELIGIBLE=Y", "lsb.resources:4: limit one: INELIGIBLE is not supported by lava and has no effect"),
        ("USERS=ann", "lsb.resources:2: limit one bounds nothing"),
        ("RESOURCE=[ncpus, 4]", "lsb.resources:2: limit one: RESOURCE: ncpus cannot be limited: no job reserves it"),
        (
            "RESOURCE=[gpu_power, 4]",
            "lsb.resources:2: limit one: RESOURCE: gpu_power cannot be limited: no job reserves it",
        ),
        ("SLOTS=1\nQUEUES=noon", "lsb.resources:2: limit one: QUEUES: no queue noon in lsb.queues"),
    ],
)
def test_what_a_limit_cannot_be_is_said_with_its_line(lines: str, said: str, tmp_path: Path) -> None:
    _, problems = read_site(tmp_path, **FILES, lsb__resources=f"Begin Limit\nNAME = one\n{lines}\nEnd Limit\n")
    assert problems == [said]


USAGE = "Begin ReservationUsage\nRESOURCE METHOD RESERVE\nmem {method} ()\nEnd ReservationUsage\n"


BOTH = {"h1": 2, "h2": 2}


@pytest.mark.parametrize(("method", "expected"), [("PER_TASK", BOTH), ("PER_SLOT", BOTH), ("PER_HOST", {"h1": 4})])
def test_what_an_amount_is_reserved_for(method: str, expected: dict[str, int], tmp_path: Path) -> None:
    world = site_world(tmp_path, lsb__resources=USAGE.format(method=method))
    world.hosts("h1", "h2", slots=4)
    key = world.submit(slots=4, resreq="rusage[mem=6000]")
    assert world.step() == {key: expected}
    own = world.submit(slots=2, resreq="rusage[mem=3000/host]")
    assert sum(world.step()[own].values()) == 2, "what a job says itself goes before"


def test_a_method_that_is_none(tmp_path: Path) -> None:
    _, problems = read_site(tmp_path, lsb__resources=USAGE.format(method="PER_MOON"))
    assert [problem.partition(" is none of")[0] for problem in problems] == [
        "lsb.resources:3: reservation usage mem: METHOD 'PER_MOON'"
    ]
