"""GPUs that departments share, on simulated GPUs: limits, guarantees that come back, jobs in a deadlock and what they hold."""

from __future__ import annotations

import re
import urllib.request

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUES = """
Begin Queue
QUEUE_NAME = physics
PRIORITY   = 30
WEIGHT     = gpus:1
RERUNNABLE = Y
End Queue

Begin Queue
QUEUE_NAME = maths
PRIORITY   = 30
WEIGHT     = gpus:1
RERUNNABLE = Y
End Queue

Begin Queue
QUEUE_NAME = pieces
PRIORITY   = 20
GANG       = N
End Queue
"""
LIMITS = """
Begin Limit
NAME       = few
PER_QUEUE  = normal
RESOURCE   = [ngpus_physical, 1]
End Limit
"""
ONE = "-gpu num=1:j_exclusive=yes -o /dev/null"

pytestmark = pytest.mark.cluster(
    slots=16,
    options=("--gpus", "4"),
    conf={"lsf.conf": "LAVA_METRICS_ADDRESS=127.0.0.1:@PORT@\n"},
    added={"lsb.queues": QUEUES, "lsb.resources": LIMITS},
)


def held_seconds(cluster: Cluster) -> float:
    address = (cluster.folder.conf / "lsf.conf").read_text().partition("LAVA_METRICS_ADDRESS=")[2].split()[0]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        found = re.search(r"^lava_gpu_held_idle_seconds_total (\S+)$", answer.read().decode(), re.MULTILINE)
    assert found
    return float(found[1])


def text_of(cluster: Cluster, command: str) -> str:
    """What a command shows, without its line breaks."""
    return " ".join(cluster.run(command).stdout.split())


def until_it_waits_for(cluster: Cluster, job: int | str, reason: str) -> None:
    wait_until(lambda: reason in text_of(cluster, f"bjobs -p {job}"), 30, lambda: text_of(cluster, f"bjobs -p {job}"))


def test_a_limit_on_gpus_holds_and_is_shown(cluster: Cluster) -> None:
    first, second = (cluster.submit(f"{ONE} sleep 1000") for _ in range(2))
    cluster.wait_for(first, "RUN")
    limit = "Resource (ngpus_physical) limit defined on queue has been reached (Limit Name: few, Limit Value: 1)"
    until_it_waits_for(cluster, second, limit)
    assert "QUEUES HOSTS PROJECTS ngpus_physical few - normal - - 1/1" in text_of(cluster, "blimits")
    cluster.run(f"bkill {first} {second}")
    for job in (first, second):
        cluster.wait_end(job)


def test_what_is_lent_comes_back_when_its_owner_asks(cluster: Cluster) -> None:
    lent, more = (cluster.submit(f"-q maths -J '[1-2]' {ONE} sleep 1000") for _ in range(2))
    cluster.wait_for(lent, "RUN")
    cluster.wait_for(more, "RUN")
    own = cluster.submit("-q physics -gpu num=2:j_exclusive=yes -o /dev/null sleep 1000")
    cluster.wait_for(own, "RUN")
    states = [*cluster.states(lent), *cluster.states(more)]
    assert sorted(states) == ["PEND", "PEND", "RUN", "RUN"], "those that borrowed wait again, and are not lost"
    owns = "OWNED GPUS: WEIGHT 1 CAPABILITY - GUARANTEE 0 RECLAIMABLE Y DESERVED 2 USED 2"
    assert owns in text_of(cluster, "bqueues -l physics")
    cluster.run(f"bkill {own} {lent} {more}")
    for job in (own, lent, more):
        cluster.wait_end(job)


def test_what_is_guaranteed_is_not_lent(cluster: Cluster) -> None:
    queues = cluster.folder.conf / "lsb.queues"
    text = queues.read_text()
    queues.write_text(text.replace("WEIGHT     = gpus:1", "GUARANTEE  = gpus:2", 1))
    cluster.run("badmin reconfig -f")
    first, second = (cluster.submit("-q maths -gpu num=2:j_exclusive=yes -o /dev/null sleep 1000") for _ in range(2))
    cluster.wait_for(first, "RUN")
    until_it_waits_for(cluster, second, "The GPUs that are left are guaranteed to other queues")
    assert "physics gpus ok 4 2 2 0" in text_of(cluster, "bresources -g")
    own = cluster.submit("-q physics -gpu num=2:j_exclusive=yes -o /dev/null true")
    assert cluster.wait_end(own) == ["DONE"]
    cluster.run(f"bkill {first} {second}")
    for job in (first, second):
        cluster.wait_end(job)
    queues.write_text(text)
    cluster.run("badmin reconfig -f")


def test_gangs_hold_no_gpu_idle_and_pieces_of_two_jobs_do(cluster: Cluster) -> None:
    four = "-n 4 -gpu num=1/task:j_exclusive=yes -o /dev/null"
    before = held_seconds(cluster)
    gangs = [cluster.submit(f"-q maths {four} true") for _ in range(2)]
    for job in gangs:
        cluster.wait_end(job)
    assert held_seconds(cluster) == before, "the second has no GPU before it has all four"
    pieces = cluster.submit(f"-q pieces -J '[1-2]' {four} true")  # of one submission, so that they take turns from the start
    for element in (1, 2):
        until_it_waits_for(cluster, f"'{pieces}[{element}]'", "Deadlock: the job holds slots that other waiting jobs need")
    now = held_seconds(cluster)
    wait_until(lambda: held_seconds(cluster) > now, 20, "GPUs are held")
    assert now > before
    cluster.run(f"bkill '{pieces}[1]'")
    assert cluster.wait_end(f"{pieces}[2]") == ["DONE"]
    end = held_seconds(cluster)
    assert held_seconds(cluster) == end, "nothing is held any more"
