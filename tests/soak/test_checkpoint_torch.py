"""PyTorch training over two hosts, hosts killed at random: the weights are those of an undisturbed run, bit by bit."""

from __future__ import annotations

import os
import random
import re
from functools import partial
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.wheels import environment
from tests.support.wait import wait_until

TRAIN = Path(__file__).parents[2] / "examples" / "checkpoint_torch" / "train.py"
KILLS = int(os.environ.get("LAVA_CHECKPOINT_KILLS", "10"))


def test_hosts_killed_at_random_change_no_bit(tmp_path: Path) -> None:
    """Checkpoints are asked for all the time; each kill takes a whole host of the job, also while one is being written."""
    bins, why = environment("torch", "torch", "numpy", "lightning", within=1200)
    if why:
        pytest.skip(why)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    chance = random.Random(5)
    steps = 150 * KILLS
    with Cluster(tmp_path / "cluster", hosts=3, slots=1) as cluster:
        run = f'-a pytorch -n 2 -R "span[ptile=1]" {bins}/python3 {TRAIN}'
        first = cluster.submit(f"-o {tmp_path}/calm {run} {tmp_path}/a/weights {steps}")
        cluster.wait_for(first, "DONE", timeout=300)
        cluster.environ["STEP_SECONDS"] = "0.05"
        options = f'-k "{tmp_path}/ck init=1 1 method=app" -o {tmp_path}/out'
        job = cluster.submit(f"{options} {run} {tmp_path}/b/weights {steps}")

        out, made = tmp_path / "out", tmp_path / "ck" / str(job)

        def started(times: int) -> bool:
            """The ranks say so themselves: a job is RUN from its dispatch on."""
            return out.exists() and out.read_text().count("rank 0: steps") >= times

        def newest() -> int:
            return max((int(path.name[4:]) for path in made.glob("gen-*") if path.name[4:].isdigit()), default=0)

        def story() -> str:
            return cluster.run(f"bhist -l {job}").stdout

        for kill in range(KILLS):
            wait_until(partial(started, kill + 1), 120, story)
            known = newest()
            cluster.run(f"bchkpnt {job}")
            if chance.random() < 0.7:
                wait_until(partial(lambda known: newest() > known, known), 60, story)
            hosts = cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")
            lost = chance.choice(hosts)
            cluster.kill_host(lost)
            cluster.wait_for(job, "PEND", "RUN", timeout=120)
            cluster.up()
        cluster.wait_for(job, "DONE", timeout=600)
        told = story()
    assert (tmp_path / "a" / "weights").read_bytes() == (tmp_path / "b" / "weights").read_bytes(), told
    assert len(re.findall(r"steps [1-9]\d* to", out.read_text())) >= KILLS, "it went on, and not from nothing"
