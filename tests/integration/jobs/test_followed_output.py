"""bpeek -f shows all that a job writes, to its last word."""

from __future__ import annotations

import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.live.cluster import Cluster


@pytest.mark.parametrize("out", ["", "-o out.%J"])
def test_the_last_that_a_job_writes_is_shown(cluster: Cluster, tmp_path: Path, out: str) -> None:
    """The host has forgotten the job by then: bpeek ended with `no output is here`."""
    job = cluster.submit(f"{out} 'echo first; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo last'", cwd=tmp_path)
    cluster.wait_for(job, "RUN")
    with subprocess.Popen(["bpeek", "-f", str(job)], env=cluster.environ, stdout=PIPE, stderr=PIPE, text=True) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "first\n"
        (tmp_path / "go").touch()
        rest, said = follower.communicate(timeout=60)
    assert (rest.splitlines()[0], said, follower.returncode) == ("last", "", 0)
