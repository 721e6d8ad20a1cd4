"""PyTorch over two hosts, which are killed at random, and moved by bmig: the weights of an undisturbed run, bit by bit."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.live.checkpointed import KILLS, MOVES, Checkpointed
from tests.support.live.cluster import Cluster
from tests.support.live.wheels import environment

TRAIN = Path(__file__).parents[2] / "examples" / "checkpoint_torch" / "train.py"


class Training:
    """A job of train.py, after the same without checkpoints and disturbances."""

    def __init__(self, cluster: Cluster, folder: Path, steps: int) -> None:
        bins, why = environment("torch", "torch", "numpy", "lightning", within=1200)
        if why:
            pytest.skip(why)
        # torch.save writes the name into the file
        self.calm, self.weights = folder / "calm" / "weights", folder / "weights"
        self.calm.parent.mkdir()
        train, options = f"{bins}/python3 {TRAIN}", "-a pytorch -n 2"
        first = cluster.submit(f'-o {folder}/calm/out -R "span[ptile=1]" {options} {train} {self.calm} {steps}')
        cluster.wait_for(first, "DONE", timeout=300)
        cluster.environ["STEP_SECONDS"] = "0.05"
        self.run = Checkpointed(cluster, folder, options, f"{train} {self.weights} {steps}", "rank 0: steps")

    def check(self, least: int) -> None:
        """It ends well, with the same weights, and went on at least so often, not from nothing."""
        self.run.cluster.wait_for(self.run.job, "DONE", timeout=600)
        assert self.calm.read_bytes() == self.weights.read_bytes(), self.run.story()
        assert len(re.findall(r"rank 0: steps [1-9]\d* to", self.run.out.read_text())) >= least, self.run.story()


def test_hosts_killed_at_random_change_no_bit(tmp_path: Path) -> None:
    """Checkpoints are asked for all the time; each kill takes a whole host of the job, also while one is being written."""
    chance = random.Random(5)
    with Cluster(tmp_path / "cluster", hosts=3, slots=1) as cluster:
        training = Training(cluster, tmp_path, 150 * KILLS)
        job = training.run
        for kill in range(KILLS):
            job.wait_for_start(kill + 1)
            known = job.newest()
            job.ask()
            # a kill right after the start of the first would leave nothing to go on from
            if chance.random() < 0.7 or not known:
                job.wait_for_more_than(known)
            job.lose(chance.choice(job.hosts()))
        training.check(KILLS)


def test_a_job_that_is_migrated_again_and_again_changes_no_bit(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", hosts=4, slots=1) as cluster:
        training = Training(cluster, tmp_path, 40 * MOVES)
        training.run.move(MOVES)
        training.check(MOVES)
