"""Fair share in lsb.queues, lsb.users and lsb.hosts: read, checked with file and line, and handed to the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.values import Aps, Shares
from config.read.load import load
from config.values import share as vs
from config.values.values import Scope
from lavad.configure.resolve import resolve

CLUSTER = "Begin Host\nHOSTNAME model type server\nh1 ! ! 1\nEnd Host\n"
SHARED = "Begin Cluster\nClusterName\nlab\nEnd Cluster\n"
USERS = """Begin UserGroup
GROUP_NAME GROUP_MEMBER USER_SHARES
dev (ann bob) ([ann,3] [bob,1])
End UserGroup
"""


def read(tmp_path: Path, queues: str, hosts: str = "", params: str = "", users: str = USERS, cluster: str = CLUSTER):
    for name, text in (
        ("lsf.cluster.lab", cluster),
        ("lsf.shared", SHARED),
        ("lsb.queues", queues),
        ("lsb.users", users),
        ("lsb.hosts", hosts),
        ("lsb.params", params),
    ):
        (tmp_path / name).write_text(text)
    return load(str(tmp_path))


def queue(*lines: str, name: str = "q") -> str:
    return "\n".join(["Begin Queue", f"QUEUE_NAME = {name}", *lines, "End Queue", ""])


def test_a_queue_with_fair_share_reaches_the_core(tmp_path: Path) -> None:
    text = queue(
        "FAIRSHARE = USER_SHARES[[dev, 3] [default, 1]]",
        "FAIRSHARE_QUEUES = q low",
        "DISPATCH_ORDER = QUEUE",
        "RUN_TIME_FACTOR = 1.5",
        "ENABLE_HIST_RUN_TIME = Y",
        "PRIORITY = 40",
    ) + queue("PRIORITY = 20", name="low")
    loaded = read(tmp_path, text, params="Begin Parameters\nHIST_HOURS = 8\nJOB_PRIORITY_OVER_TIME = 3/20\nEnd Parameters\n")
    assert not loaded.problems
    conf = resolve(loaded.config)
    share = conf.queues[0].share
    assert share is not None
    assert share.shares == (("dev", 3), ("default", 1))
    assert (share.queues, share.by_queue, share.hist_hours, share.run_time_factor) == (("low",), True, 8.0, 1.5)
    assert (share.enable_hist_run_time, share.cpu_time_factor, share.run_job_factor) == (True, 0.7, 3.0)
    assert conf.queues[1].share is None
    assert conf.group_shares == (("dev", (("ann", 3), ("bob", 1))),)
    assert conf.params.job_priority_over_time == (3, 1200)


@pytest.mark.parametrize(
    ("lines", "alone"),
    [
        (("FAIRSHARE = USER_SHARES[[others, 1]]",), False),
        (("FAIRSHARE = USER_SHARES[[others, 1]]", "QUEUE_GROUP = low"), False),
        (("QUEUE_GROUP = low",), True),
    ],
)
def test_shares_that_a_queue_names_are_told_from_those_of_its_group(tmp_path: Path, lines: tuple[str, ...], alone: bool) -> None:
    conf = resolve(read(tmp_path, queue(*lines, name="top") + queue(name="low")).config)
    share = next(one.share for one in conf.queues if one.name == "top")
    assert share is not None
    assert (share.shares, share.of_group_alone) == ((("others", 1),), alone)


def test_turns_dominant_resources_and_partitions(tmp_path: Path) -> None:
    text = queue("ROUND_ROBIN_POLICY = Y") + queue("DOMINANT_RESOURCES = slots mem ngpus", name="drf")
    hosts = "Begin HostPartition\nHPART_NAME = part1\nHOSTS = all\nUSER_SHARES = [ann, 3] [others, 1]\nEnd HostPartition\n"
    loaded = read(tmp_path, text, hosts)
    assert not loaded.problems
    conf = resolve(loaded.config)
    turns, drf = conf.queues[0].share, conf.queues[1].share
    assert turns is not None
    assert drf is not None
    assert turns.round_robin
    assert drf.dominant_resources == ("slots", "mem", "gpus")
    assert conf.partitions[0].share.shares == (("ann", 3), ("others", 1))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (queue("FAIRSHARE = USER_SHARES[[a, 1]]", "FAIRSHARE_QUEUES = nowhere"), 4, "no queue nowhere"),
        (queue("FAIRSHARE_QUEUES = q"), 3, "needs FAIRSHARE"),
        (queue("FAIRSHARE = USER_SHARES[[a, 1] [a, 2]]"), 3, "a has shares twice"),
        (queue("FAIRSHARE = USER_SHARES[[a, 0]]"), 3, "is not [name, shares] with 1 to 999999999 shares"),
        (queue("FAIRSHARE = USER_SHARES[[all, 1] [default, 2]]"), 3, "default has shares twice"),
        (queue("FAIRSHARE = USER_SHARES[[a, 1]]", "ROUND_ROBIN_POLICY = Y"), 4, "exclude each other"),
        (queue("APS_PRIORITY = WEIGHT[[NICE, 1]]"), 3, "is no factor"),
        (queue("APS_PRIORITY = LIMIT[[FS, 1]]"), 3, "gives no factor a WEIGHT"),
        (queue("APS_PRIORITY = WEIGHT[[FS, 0]]"), 3, "number other than 0"),
        (queue("DOMINANT_RESOURCES = tmp"), 3, "none of slots, mem, gpus"),
        (queue("DISPATCH_ORDER = USER"), 3, "DISPATCH_ORDER"),
    ],
)
def test_contradictions_are_told_with_their_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    problems = read(tmp_path, text).problems
    assert problems
    assert problems[0].line == line
    assert problems[0].fatal
    assert words in problems[0].text


def test_aps_priority() -> None:
    text = "WEIGHT[[JPRIORITY, 1] [QPRIORITY, 10] [FS, -0.5]] LIMIT[[RSRC, 3.5]] "
    text += "GRACE_PERIOD[[MEM,10h] [PROC, 10m] [FS,9s] [WORK,2]]"
    assert vs.aps_priority(text, Scope()) == Aps(
        weights=(("JPRIORITY", 1.0), ("QPRIORITY", 10.0), ("FS", -0.5)),
        limits=(("RSRC", 3.5),),
        graces=(("MEM", 36000.0), ("PROC", 600.0), ("FS", 9.0), ("WORK", 7200.0)),
    )


PARTITION = "Begin HostPartition\nHPART_NAME = {}\nHOSTS = {}\nUSER_SHARES = {}\nEnd HostPartition\n"


@pytest.mark.parametrize(
    ("given", "shares"), [("[[all, 3]]", (("default", 3),)), ("[]", (("default", 1),)), ("[ ]", (("default", 1),))]
)
def test_shares_of_all(given: str, shares: Shares, tmp_path: Path) -> None:
    """OpenLava writes `all`, and LSF takes an empty list."""
    loaded = read(tmp_path, queue(f"FAIRSHARE = USER_SHARES{given}"))
    assert not loaded.problems
    assert loaded.config.queues[0].fairshare == shares


def test_shares_of_the_members_of_a_group_that_is_not_there(tmp_path: Path) -> None:
    users = USERS.replace("End", "of_all (dev ann) ([dev@,2] [ann@,1])\nEnd")
    hosts = PARTITION.format("part", "all", "[dev@, 2] [ops@, 1]")
    loaded = read(tmp_path, queue("FAIRSHARE = USER_SHARES[[dev@, 2] [dve@, 1] [default, 1]]"), hosts, users=users)
    lacking = ": there is no user group of that name: these shares have no effect"
    assert sorted((problem.line, problem.fatal, problem.text) for problem in loaded.problems) == [
        (2, False, f"host partition part: USER_SHARES: ops@{lacking}"),
        (3, False, f"queue q: FAIRSHARE: dve@{lacking}"),
        (4, False, f"user group of_all: USER_SHARES: ann@{lacking}"),
    ]


def test_what_of_host_partitions_is_not_as_in_lsf_is_told(tmp_path: Path) -> None:
    cluster = CLUSTER.replace("End", "h2 ! ! 1\nEnd")
    group = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nboth (h1 h2)\nEnd HostGroup\n"

    def told(*parts: tuple[str, str, str]) -> list[tuple[bool, str]]:
        text = "".join(PARTITION.format(*part) for part in parts)
        problems = read(tmp_path, queue("PRIORITY = 1"), group + text, cluster=cluster).problems
        assert all(problem.line for problem in problems)
        return [(problem.fatal, problem.text) for problem in problems]

    every, some = "[default, 1]", "host partition a: HOSTS has no effect: the partition rules for all hosts"
    assert told(("a", "both", every)) == told(("a", "h[1-2]", every)) == told(("a", "all", every)) == []
    assert told(("a", "h1", every)) == told(("a", "all ~h2", every)) == [(False, some)]
    second = "host partition b has no effect: the first, a, rules for all hosts"
    assert told(("a", "all", every), ("b", "h2", every)) == [(False, second)]
    assert told(("a", "all h3", every)) == [(True, "host partition a: unknown host or host group h3")]
    assert told(("a", "all", "[ann, 1] [ann, 2]")) == [(True, "host partition a: USER_SHARES: ann has shares twice")]
