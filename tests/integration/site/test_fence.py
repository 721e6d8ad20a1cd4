"""LAVA_FENCE: leased jobs of a silent host start elsewhere when the site's program says that the host is off, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

CONF = {"lsf.conf": "LAVA_FENCE=@FOLDER@/fence\nLAVA_LEASE=3600\n"}
FENCE = """#!/bin/sh
echo "$@" >> {0}/asked
[ -e {0}/off ] && echo it is off
"""


@pytest.mark.cluster(hosts=2, conf=CONF)
def test_a_fenced_hosts_jobs_start_elsewhere_at_once(own_cluster: Cluster, tmp_path: Path) -> None:
    """The lease is an hour: nothing but the program can have brought the job back."""
    program = tmp_path / "fence"
    program.write_text(FENCE.format(tmp_path))
    program.chmod(0o755)
    command = f"'echo $LAVA_HOST >>{tmp_path}/ran; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'"
    job = own_cluster.submit(f"-r -m 'host2+5 host1' -o /dev/null {command}")
    other = own_cluster.submit(f"-m host2 -o /dev/null {command}")
    ran = tmp_path / "ran"
    wait_until(lambda: ran.exists() and len(ran.read_text().split()) == 2, 30, own_cluster.logs)
    first = own_cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip()
    own_cluster.kill_host(first)
    asked = tmp_path / "asked"
    wait_until(lambda: asked.exists() and len(asked.read_text().splitlines()) > 1, 60, own_cluster.logs)
    assert set(asked.read_text().splitlines()) == {f"{first} 127.0.0.1"}
    assert own_cluster.states(job) == ["UNKWN"]
    (tmp_path / "off").touch()
    wait_until(lambda: len(ran.read_text().split()) == 3, 60, own_cluster.logs)
    assert own_cluster.states(other) == ["UNKWN"]
    (tmp_path / "go").touch()
    own_cluster.wait_for(job, "DONE")
    told = "".join(own_cluster.run(f"badmin hhist {first}").stdout.split())
    assert f"Host<{first}>:LAVA_FENCEexitedwith1,itmaystillrunjobs." in told
    assert f"Host<{first}>:LAVA_FENCEexitedwith0,nothingrunsthereanymore:itisoff." in told
