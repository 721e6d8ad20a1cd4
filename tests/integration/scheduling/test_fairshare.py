"""Fair share on a real cluster: shown by bqueues, kept over the death of the master; ``lava why`` of a waiting job."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUE = """
Begin Queue
QUEUE_NAME = fair
PRIORITY   = 50
FAIRSHARE  = USER_SHARES[[default, 7]]
ENABLE_HIST_RUN_TIME = Y
End Queue
"""


pytestmark = pytest.mark.cluster(slots=2, added={"lsb.queues": QUEUE})


def row(cluster: Cluster) -> list[str]:
    """The first line of the share table."""
    lines = cluster.run("bqueues -r fair").stdout.splitlines()
    at = lines.index("SHARE_INFO_FOR: fair/")
    assert lines[at + 1].split() == ["USER/GROUP", "SHARES", "PRIORITY", "STARTED", "RESERVED", "CPU_TIME", "RUN_TIME", "ADJUST"]
    return lines[at + 2].split() if len(lines[at + 2].split()) == 8 else []


def test_what_a_user_used_is_shown_and_survives_the_master(cluster: Cluster, tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 1.5: pass\n"
    (tmp_path / "busy.py").write_text(busy)
    job = cluster.submit("-q fair -o /dev/null python3 busy.py", cwd=tmp_path)
    wait_until(lambda: row(cluster)[3] == "1", 20, "the job to count as started")
    cluster.wait_end(job)
    name, shares, priority, started, reserved, cpu, _, adjust = wait_until(
        lambda: row(cluster) if row(cluster)[3] == "0" else [], 20, "the job to be over"
    )
    assert (shares, started, reserved, adjust) == ("7", "0", "0", "0.000")
    assert float(cpu) > 0.5, name
    assert 7 / 3.1 < float(priority) < 7 / 3
    cluster.kill("lavad")
    cluster.up()
    again = row(cluster)
    assert float(again[5]) == pytest.approx(float(cpu), abs=0.2)


def test_lava_why_of_a_job_that_is_too_wide(cluster: Cluster, tmp_path: Path) -> None:
    blocker = cluster.submit("-q fair -W 5 -o /dev/null sleep 300", cwd=tmp_path)
    cluster.wait_for(blocker, "RUN")
    waiting = cluster.submit("-q fair -n 2 -o /dev/null sleep 1", cwd=tmp_path)
    text = cluster.run(f"lava why {waiting}").stdout
    assert f"Job <{waiting}>" in text
    assert "Position: 1 of 1 in its queue" in text
    assert "1 slot instead of 2 (-n 1)" in text
    assert "Estimated start: from " in text
    cluster.run(f"bkill {blocker} {waiting}")
