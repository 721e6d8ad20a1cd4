"""Service classes with goals in time on a real cluster: no more jobs than they need, and so after the master was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

CLASSES = """
Begin ServiceClass
NAME = nightly
PRIORITY = 20
GOALS = [VELOCITY 2 timeWindow (0:00-12:00)] \\
        [VELOCITY 2 timeWindow (12:00-24:00)]
DESCRIPTION = regression tests
End ServiceClass
Begin ServiceClass
NAME = hourly
GOALS = [THROUGHPUT 36000]
End ServiceClass
"""

pytestmark = pytest.mark.cluster(slots=3, added={"lsb.serviceclasses": CLASSES})


def optimum(cluster: Cluster) -> int:
    shown = cluster.run("bsla hourly").stdout
    return int(shown.partition("OPTIMUM NUMBER OF RUNNING JOBS:")[2].split()[0])


def states(cluster: Cluster, *jobs: int) -> list[str]:
    return [cluster.run(f"bjobs -noheader -o stat {job}").stdout.strip() for job in jobs]


def test_jobs_of_a_class_start_up_to_its_goal(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("hourly", "nightly"):
        short = cluster.submit(f"-sla {name} -o /dev/null sleep 1", cwd=tmp_path)
        cluster.wait_for(short, "DONE")
    before = optimum(cluster)
    assert before >= 10, "each took a second: ten at once for ten in a second"
    mine = [cluster.submit("-sla nightly -o /dev/null sleep 300", cwd=tmp_path) for _ in range(3)]
    cluster.wait_for(mine[1], "RUN")
    reason = "As many jobs of the service class run as its goals need now"
    wait_until(lambda: reason in cluster.run(f"bjobs -p {mine[2]}").stdout, 20, "the goal to be the reason")
    cluster.kill("lavad")
    cluster.up()
    other = cluster.submit("-o /dev/null sleep 300", cwd=tmp_path)
    cluster.wait_for(other, "RUN")
    assert optimum(cluster) == before
    assert states(cluster, *mine) == ["RUN", "RUN", "PEND"]
    shown = cluster.run("bsla nightly").stdout
    assert "SERVICE CLASS NAME:  nightly\n -- regression tests\nPRIORITY:  20\n" in shown
    assert shown.count("STATUS:  Active:On time\nSLA THROUGHPUT:  1.00 JOBS/CLEAN_PERIOD\n") == 1
    assert shown.count("STATUS:  Inactive\n") == 1
    assert shown.splitlines()[-2].split() == ["4", "1", "2", "0", "0", "1"]
    cluster.run(f"bkill {mine[0]}")
    cluster.wait_for(mine[2], "RUN")
    cluster.run(f"bkill {mine[1]} {mine[2]} {other}")
