"""500 mixed jobs under random kills of every daemon, on both databases. Minutes, not seconds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.live.chaos import Chaos
from tests.support.live.cluster import Cluster

JOBS = int(os.environ.get("LAVA_SOAK_JOBS", "500"))
SEEDS = [int(seed) for seed in os.environ.get("LAVA_SOAK_SEEDS", "11 12").split()]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("masters", [1, 2])
def test_no_job_of_many_is_lost_or_runs_twice(tmp_path: Path, masters: int, seed: int) -> None:
    tmp_path.chmod(0o755)
    victims = ["lavad", "scheduler", "agent-host1", "agent-host2", "agent-host3"]
    options: tuple[str, ...] = ()
    if masters > 1:
        victims.append("lavad-2")
        options = ("--masters", str(masters))
    with Cluster(tmp_path / "cluster", hosts=3, slots=8, options=options) as cluster:
        chaos = Chaos(cluster, tmp_path, seed)
        thread = chaos.kill_daemons(victims, (0.5, 4.0))
        try:
            chaos.submit(JOBS)
        finally:
            chaos.calm(thread)
        chaos.check(600)
        check_replay(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_rerunnable_jobs_survive_the_loss_of_hosts(tmp_path: Path, seed: int) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=3, slots=8) as cluster:
        chaos = Chaos(cluster, tmp_path, seed, rerunnable=True)
        thread = chaos.kill_daemons(["host1", "host2", "host3", "lavad"], (2.0, 6.0))
        try:
            chaos.submit(JOBS)
        finally:
            chaos.calm(thread)
        chaos.check(600)
        check_replay(cluster)


CHUNKS = """
Begin Queue
QUEUE_NAME = chunks
CHUNK_JOB_SIZE = 5
End Queue
"""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rerunnable", [False, True], ids=["agents", "hosts"])
def test_jobs_in_chunks_are_not_lost_and_do_not_run_twice(tmp_path: Path, rerunnable: bool, seed: int) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=3, slots=2) as cluster:
        with (cluster.folder.conf / "lsb.queues").open("a") as file:
            file.write(CHUNKS)
        cluster.run("badmin reconfig -f")
        chaos = Chaos(cluster, tmp_path, seed, rerunnable, queue="chunks")
        victims = ["host1", "host2", "host3"] if rerunnable else ["scheduler", "agent-host1", "agent-host2", "agent-host3"]
        thread = chaos.kill_daemons([*victims, "lavad"], (1.0, 5.0))
        try:
            chaos.submit(JOBS // 2)
            waited = cluster.run("bjobs -noheader -o stat", ok=False).stdout.split().count("WAIT")
        finally:
            chaos.calm(thread)
        chaos.check(600)
        assert waited
        check_replay(cluster)


def check_replay(cluster: Cluster) -> None:
    """Whatever was killed meanwhile, the decisions come out the same again."""
    found = json.loads(cluster.run("lava replay --json", timeout=300).stdout)
    assert found["first"] is None
    assert found["equal"] == found["plans"] > 10
    assert found["before"] == 0
