"""The CRIU of this machine, for tests that need one: that of LAVA_TEST_CRIU, else ``criu``; skipped with the reason without."""

from __future__ import annotations

import os
import subprocess
from functools import cache

import pytest

from agent.launch import checkpoints
from tests.support.live.cluster import Cluster


@cache
def why_not() -> str:
    """Why CRIU does not work here, "" where it does."""
    done = subprocess.run(checkpoints.words("trial", program()), capture_output=True, text=True, check=False, cwd="/")
    return (done.stderr.strip().splitlines() or ["it says nothing"])[-1] if done.returncode else ""


def program() -> str:
    """Its path or name."""
    return os.environ.get("LAVA_TEST_CRIU") or "criu"


def needed() -> None:
    """Skip the test where it does not work."""
    if why := why_not():
        pytest.skip(f"CRIU does not work here (LAVA_TEST_CRIU names another one): {why}")


def tell(cluster: Cluster) -> None:
    """Its name goes into the cluster's lsf.conf, before the cluster is started for good."""
    with cluster, (cluster.folder.path / "conf" / "lsf.conf").open("a") as file:
        file.write(f"LAVA_CRIU={program()}\n")
