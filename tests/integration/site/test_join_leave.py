"""Hosts join a running cluster and leave it, on a real one."""

from __future__ import annotations

import getpass
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

LISTED = """
Begin ClusterAdmins
ADMINISTRATORS = {me}
End ClusterAdmins
Begin Host
HOSTNAME model type server RESOURCES
{hosts}
End Host
"""


def test_join_and_leave(tmp_path: Path) -> None:
    """A host that lsf.cluster no longer names keeps its job, takes no other, leaves, and may come back."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "lsf.conf").write_text("LSF_DYNAMIC_HOST_TIMEOUT = 60m\nLSF_DYNAMIC_HOST_WAIT_TIME = 60\n")
    (conf / "lsb.hosts").write_text("Begin Host\nHOST_NAME MXJ\ndefault 4\nEnd Host\n")

    def listed(*hosts: str) -> None:
        lines = "\n".join(f"{host} ! ! 1 ()" for host in hosts)
        (conf / "lsf.cluster.lava").write_text(LISTED.format(me=getpass.getuser(), hosts=lines))

    listed("host1", "host2")
    with Cluster(tmp_path / "cluster", hosts=2, options=("--conf", str(conf))) as cluster:
        conf = cluster.folder.conf

        def hosts() -> str:
            return cluster.run("bhosts").stdout

        wait_until(lambda: hosts().count(" ok ") == 2, 30, hosts)
        job = cluster.submit("-m host2 sleep 1000")
        cluster.wait_for(job, "RUN")
        listed("host1")
        assert "initiated" in cluster.run("badmin reconfig").stdout
        wait_until(lambda: "closed" in hosts(), 30, hosts)
        assert cluster.states(job) == ["RUN"]
        cluster.run(f"bkill {job}")
        cluster.wait_end(job)
        wait_until(lambda: "host2" not in hosts(), 30, hosts)
        assert "has left the cluster" in cluster.run("badmin hist").stdout
        listed("host1", "host2")
        cluster.run("badmin reconfig")
        wait_until(lambda: hosts().count(" ok ") == 2, 60, hosts)
        assert cluster.wait_end(cluster.submit("-m host2 true")) == ["DONE"]
