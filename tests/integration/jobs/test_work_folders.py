"""JOB_CWD_TTL on a real cluster: the folder that was made for a job goes when the job is over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

TIDY = """
Begin Application
NAME        = tidy
JOB_CWD     = run.%J
JOB_CWD_TTL = 0
End Application
"""

pytestmark = pytest.mark.cluster(added={"lsb.applications": TIDY})


def test_a_folder_made_for_a_job_goes_with_it(cluster: Cluster, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    stays = cluster.submit("-cwd 'stays.%J' -o /dev/null true", cwd=tmp_path)
    job = cluster.submit(f"-app tidy -o /dev/null 'pwd >used; cp used {tmp_path}'", cwd=tmp_path)
    cluster.wait_end(job)
    wait_until(lambda: not (tmp_path / f"run.{job}").exists(), 120, "the folder to go")
    assert (tmp_path / "used").read_text() == f"{tmp_path}/run.{job}\n"
    cluster.wait_end(stays)
    assert (tmp_path / f"stays.{stays}").is_dir()
