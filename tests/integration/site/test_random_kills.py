"""Daemons killed at any moment: every job ends exactly once, with its true status and its whole output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.chaos import Chaos
from tests.support.live.cluster import Cluster


@pytest.mark.parametrize(
    ("victims", "seed"),
    [
        (["lavad"], 1),
        (["agent-host1", "agent-host2"], 2),
        (["scheduler"], 3),
        (["lavad", "scheduler", "agent-host1", "agent-host2"], 4),
    ],
)
def test_no_job_is_lost_or_runs_twice(tmp_path: Path, victims: list[str], seed: int) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=2, slots=4) as cluster:
        chaos = Chaos(cluster, tmp_path, seed)
        thread = chaos.kill_daemons(victims, (0.3, 1.5))
        try:
            chaos.submit(40)
        finally:
            chaos.calm(thread)
        chaos.check(90)
