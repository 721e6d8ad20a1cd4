"""MPI over three hosts, hosts and daemons killed at random: the result is that of a run in one piece, bit by bit.

And bmig, several times in a row: each time the job goes on from the checkpoint that bmig asked it for.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.live.checkpointed import KILLS, MOVES, Checkpointed
from tests.support.live.cluster import Cluster
from tests.support.wait import SLOW

HEAT = Path(__file__).parents[2] / "examples" / "heat" / "heat.py"
SIZE = 1024
pytest.importorskip("mpi4py")


class Plate(Checkpointed):
    """A job of heat.py, beside the reference."""

    def __init__(self, cluster: Cluster, folder: Path, ranks: int, steps: int) -> None:
        self.reference, self.result = folder / "reference.f64", folder / "result.f64"
        words = [str(self.reference), "--size", str(SIZE), "--steps", str(steps), "--reference"]
        subprocess.run([sys.executable, str(HEAT), *words], check=True)
        program = f"{sys.executable} {HEAT} {self.result} --size {SIZE} --steps {steps} --pause 0.1"
        super().__init__(cluster, folder, f"-a mpi -n {ranks}", program, " plate, steps ")

    def catch(self, known: int) -> None:
        """Until one is being written, which takes milliseconds: looked for without a rest, and asked for again if missed."""
        until = time.monotonic() + 120 * SLOW
        while not any(path.suffix == ".tmp" for path in self.made.iterdir()):
            assert time.monotonic() < until, self.story()
            if self.newest() > known:
                known = self.newest()
                self.ask()

    def check(self) -> None:
        """It ends well, with the numbers of the reference."""
        self.cluster.wait_for(self.job, "DONE", timeout=600)
        assert self.result.read_bytes() == self.reference.read_bytes(), self.story()


def test_hosts_and_daemons_killed_at_random_change_no_bit(tmp_path: Path) -> None:
    chance = random.Random(3)
    kinds = ["host", "agent", "lavad", "host that writes"]
    kills = [*kinds, *chance.choices(kinds, (3, 1, 1, 3), k=KILLS)][:KILLS]
    # one host more than the job has: it does not return at once to the one that it lost
    with Cluster(tmp_path / "cluster", hosts=4, slots=1) as cluster:
        plate = Plate(cluster, tmp_path, 3, 60 * KILLS)
        starts = 1
        for kind in kills:
            plate.wait_for_start(starts)
            known = plate.newest()
            plate.ask()
            if kind == "host that writes":
                plate.catch(known)
            else:
                plate.wait_for_more_than(known)
            host = chance.choice(plate.hosts())
            if kind.startswith("host"):
                plate.lose(host)
                starts += 1
                continue
            cluster.kill("lavad" if kind == "lavad" else f"agent-{host}")
            if kind != "lavad":
                cluster.wait_for(plate.job, "PEND", "RUN", timeout=120)
            cluster.up()
        plate.check()
        told = plate.story()
    assert plate.starts() == starts, told
    begun = [int(step) for step in re.findall(r"plate, steps (\d+) to", plate.out.read_text())]
    assert begun == sorted(begun), told
    assert begun[-1] > 0, told


def test_a_job_that_is_migrated_again_and_again_loses_no_step(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", hosts=4, slots=1) as cluster:
        plate = Plate(cluster, tmp_path, 2, 40 * MOVES)
        plate.move(MOVES)
        plate.check()
    text = plate.out.read_text()
    written = [int(step) for step in re.findall(r"checkpoint at step (\d+)", text)]
    begun = [int(step) for step in re.findall(r"plate, steps (\d+) to", text)]
    assert begun == [0, *written], text
    assert len(written) == MOVES, text
