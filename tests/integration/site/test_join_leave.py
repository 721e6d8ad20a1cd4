"""Hosts join a running cluster and leave it, on a real one."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from functools import partial
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


SHARED = """
Begin Resource
RESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION
big Boolean () () (has much memory)
licences Numeric () N (of this host)
End Resource
"""


def test_a_host_says_what_it_has(tmp_path: Path) -> None:
    """LSF_LOCAL_RESOURCES of hosts that no file names: chosen by it, and used up by what jobs reserve of it."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "lsf.conf").write_text('LSF_LOCAL_RESOURCES="[resource big] [resourcemap 2*licences] [resource unknown]"\n')
    (conf / "lsf.shared").write_text(SHARED)
    with Cluster(tmp_path / "cluster", hosts=1, options=("--conf", str(conf))) as cluster:
        assert cluster.run("lshosts -w host1").stdout.splitlines()[1].endswith("(big licences=2)")
        jobs = [cluster.submit("-R 'select[big] rusage[licences=2]' sleep 1000") for _ in range(2)]
        cluster.wait_for(jobs[0], "RUN")
        wait_until(lambda: "licences" in cluster.run(f"bjobs -p {jobs[1]}").stdout, 30, "the reason")
        assert cluster.states(jobs[1]) == ["PEND"]
        cluster.run("bkill 0")


def _is_shown(hosts: Callable[[], str], status: str) -> bool:
    """Whether the second host has this status."""
    return status in hosts().splitlines()[2]


def test_join_and_leave(tmp_path: Path) -> None:
    """A host that lsf.cluster no longer names keeps its job, takes no other until it is named again, leaves, may come back."""
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
        for names, status in ((["host1"], "closed"), (["host1", "host2"], " ok "), (["host1"], "closed")):
            listed(*names)
            assert "initiated" in cluster.run("badmin reconfig").stdout
            wait_until(partial(_is_shown, hosts, status), 30, hosts)
        assert cluster.states(job) == ["RUN"]
        cluster.run(f"bkill {job}")
        cluster.wait_end(job)
        wait_until(lambda: "host2" not in hosts(), 30, hosts)
        assert "has left the cluster" in cluster.run("badmin hist").stdout
        listed("host1", "host2")
        cluster.run("badmin reconfig")
        wait_until(lambda: hosts().count(" ok ") == 2, 60, hosts)
        assert cluster.wait_end(cluster.submit("-m host2 true")) == ["DONE"]
