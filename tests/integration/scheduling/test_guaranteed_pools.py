"""Guaranteed resource pools on a real cluster: kept for a class, lent to short jobs, and so after the master was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

CLASSES = """
Begin ServiceClass
NAME = physics
GOALS = [GUARANTEE]
ACCESS_CONTROL = PROJECTS[physics]
AUTO_ATTACH = Y
End ServiceClass
"""
POOL = """
Begin GuaranteedResourcePool
NAME = all_hosts
TYPE = slots
DISTRIBUTION = [physics, 2]
LOAN_POLICIES = QUEUES[normal] DURATION[1]
End GuaranteedResourcePool
"""

pytestmark = pytest.mark.cluster(slots=3, added={"lsb.serviceclasses": CLASSES, "lsb.resources": POOL})


def test_what_is_guaranteed_waits_for_its_class_and_is_lent_to_short_jobs(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.submit("-o /dev/null sleep 300", cwd=tmp_path)
    cluster.wait_for(first, "RUN")
    second = cluster.submit("-o /dev/null sleep 300", cwd=tmp_path)
    wait_until(lambda: "Pool Name: all_hosts" in cluster.run(f"bjobs -p {second}").stdout, 20, "the guarantee to be the reason")
    cluster.kill("lavad")
    cluster.up()
    owner = cluster.submit("-P physics -o /dev/null sleep 300", cwd=tmp_path)
    cluster.wait_for(owner, "RUN")
    assert cluster.run(f"bjobs -noheader -o sla {owner}").stdout.strip() == "physics"
    short = cluster.submit("-W 1 -o /dev/null sleep 50", cwd=tmp_path)
    cluster.wait_for(short, "RUN")
    row = next(line.split() for line in cluster.run("bresources -g").stdout.splitlines() if line.startswith("all_hosts"))
    assert row == ["all_hosts", "slots", "ok", "3", "0", "2", "1"]
    assert cluster.run(f"bjobs -noheader -o stat {second}").stdout.strip() == "PEND"
    assert cluster.run("bkill -sla physics 0").stdout == f"Job <{owner}> is being terminated\n"
    cluster.run(f"bkill {first} {second} {short}")
