"""Networks are cut, and agents, shepherds and masters stopped for less and for more than a lease: no job runs twice.

LAVA_PARTED_FAULTS is the number of faults.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.netns import NetnsCluster, why_not
from tests.support.live.parted import Parted

FAULTS = int(os.environ.get("LAVA_PARTED_FAULTS", "200"))
SEED = int(os.environ.get("LAVA_PARTED_SEED", "1"))


def run(cluster: Cluster, folder: Path, faults: int) -> None:
    parted = Parted(cluster, folder, SEED)
    for number in range(faults):
        if number % 5 == 0:
            parted.submit(8)
        parted.befall()
    print(f"{faults} faults, {len(parted.once + parted.again)} jobs, {parted.check()} runs, none at the same time")  # noqa: T201


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_hosts_apart(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with NetnsCluster(tmp_path / "cluster", hosts=3, slots=8) as cluster:
        run(cluster, tmp_path, FAULTS)


def test_two_masters_on_one_database(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=3, slots=8, options=("--masters", "2")) as cluster:
        run(cluster, tmp_path, FAULTS)
