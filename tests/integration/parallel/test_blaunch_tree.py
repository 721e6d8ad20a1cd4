"""A launcher that starts a tree of daemons by blaunch, over eight hosts."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.inside import pids_in, said, submit_script
from tests.support.processes import is_alive
from tests.support.wait import SLOW, wait_until

pytestmark = pytest.mark.cluster(hosts=8, slots=1)

ORTED = """#!/bin/sh
# a launcher's daemon: starts those below it, then waits
echo $$ >.p.$LAVA_HOST; mv .p.$LAVA_HOST pid.$LAVA_HOST
place=$(printf '%s\\n' $LSB_HOSTS | grep -nx "$LAVA_HOST" | cut -d: -f1)
for child in $(grep "^$place " tree | cut -d' ' -f2-); do
    blaunch -n $(printf '%s\\n' $LSB_HOSTS | sed -n ${child}p) ./orted &
done
[ "$1" = stay ] && sleep 1000
while [ ! -e over ]; do sleep 0.1; done
echo "up $LAVA_HOST"
wait
"""
TREE = "1 2 3\n2 4 5\n3 6 7\n4 8\n"


def test_a_tree_of_daemons_over_eight_hosts(cluster: Cluster, tmp_path: Path) -> None:
    """Tree launch of depth 3 over 8 agents; output of all comes back along the tree."""
    (tmp_path / "orted").write_text(ORTED)
    (tmp_path / "orted").chmod(0o755)
    (tmp_path / "tree").write_text(TREE)
    hosts = " ".join(cluster.hosts)
    job, output = submit_script(cluster, tmp_path, "./orted", hosts)
    pids_in(tmp_path, "pid.*", 8)
    (tmp_path / "over").touch()
    cluster.wait_for(job, "DONE", timeout=60)
    assert sorted(said(output).split("\n")[:-1]) == [f"up host{number}" for number in range(1, 9)]


def test_the_death_of_the_root_ends_the_tree_within_two_seconds(cluster: Cluster, tmp_path: Path) -> None:
    """Kill the root: all gone in < 2 s."""
    (tmp_path / "orted").write_text(ORTED)
    (tmp_path / "orted").chmod(0o755)
    (tmp_path / "tree").write_text(TREE)
    job, _ = submit_script(cluster, tmp_path, "echo $$ >root; exec ./orted", " ".join(cluster.hosts))
    pids = pids_in(tmp_path, "pid.*", 8)
    root = int((tmp_path / "root").read_text())
    os.kill(root, signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in pids), 2 * max(SLOW, 1.0), "the tree to be gone")
    cluster.wait_for(job, "EXIT", timeout=40)
