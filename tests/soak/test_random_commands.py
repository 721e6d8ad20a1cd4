"""Careless users and administrators type whatever comes to mind while daemons die: nothing fails inside, nothing is left."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from tests.soak.test_chaos import check_replay
from tests.support.live.cluster import VENV, Cluster
from tests.support.live.random_commands import ADDED, Careless
from tests.support.wait import wait_until

COMMANDS = int(os.environ.get("LAVA_SOAK_COMMANDS", "1000"))
SEEDS = [int(seed) for seed in os.environ.get("LAVA_SOAK_SEEDS", "11 12").split()]
FAILED_INSIDE = re.compile(r"Traceback|internal error|IllegalMove")


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_typed_nothing_fails_inside(tmp_path: Path, seed: int) -> None:
    tmp_path.chmod(0o755)
    chance = random.Random(seed)
    with Cluster(tmp_path / "cluster", hosts=3, slots=4, options=("--gpus", "2")) as cluster:
        queues = cluster.folder.conf / "lsb.queues"
        queues.write_text(queues.read_text() + ADDED)
        cluster.run("badmin reconfig")

        def reconfigure(parameter: str) -> None:
            queues.write_text(re.sub(r"# changes\n.*\n", f"# changes\n{parameter}\n", queues.read_text()))

        careless = Careless(seed, tmp_path, str(VENV / "python"), reconfigure)
        for _ in range(COMMANDS):
            line = careless.types()
            done = cluster.run(f"{line} </dev/null", ok=False)
            said = done.stdout + done.stderr
            assert done.returncode in (0, 1, 255), (line, said)
            assert not FAILED_INSIDE.search(said), (line, said, cluster.logs())
            careless.sees(done.stdout)
            if chance.random() < 0.02:
                cluster.kill(chance.choice(("lavad", "agent-host2", "agent-host3")))
                cluster.up()
        for line in ("badmin hopen all", "badmin qopen all", "badmin qact all", "bkill -u all 0", "bresume -u all 0"):
            cluster.run(line, ok=False)
        wait_until(lambda: _all_over(cluster), 120, lambda: cluster.run("bjobs -l -u all", ok=False).stdout)
        used = [row.split()[4:] for row in cluster.run("bhosts").stdout.splitlines()[1:]]
        assert used == [["0"] * 5] * 3
        for log in cluster.folder.log.glob("*.log"):
            assert not FAILED_INSIDE.search(text := log.read_text(errors="replace")), (log.name, text[-3000:])
        check_replay(cluster)


def _all_over(cluster: Cluster) -> bool:
    cluster.run("bkill -u all 0", ok=False)
    return "No unfinished job found" in cluster.run("bjobs -u all", ok=False).stderr
