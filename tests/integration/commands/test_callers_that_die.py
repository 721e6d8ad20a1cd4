"""Commands that wait and are killed leave nothing in the daemons: bsub -K and -I, bwait, at lavad and through an agent."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(hosts=2, slots=4)
MANY = 60


def open_files(cluster: Cluster) -> dict[str, int]:
    """How many files each daemon has open."""
    names = ("lavad", "agent-host1", "agent-host2")
    return {name: len(os.listdir(f"/proc/{cluster.pid(name)}/fd")) for name in names}


@pytest.mark.parametrize("through", ["lavad.sock", "agent-host2.sock"])
def test_killed_commands_leave_no_connection(cluster: Cluster, tmp_path: Path, through: str) -> None:
    job = cluster.submit("-H sleep 1")
    socket = cluster.folder.path / "run" / through
    assert socket.exists()
    environ = {**cluster.environ, "LAVA_SOCKET": str(socket)}
    cluster.run(f"LAVA_SOCKET={socket} bjobs")
    before = open_files(cluster)
    words = {0: ["bsub", "-K", "-H", "sleep", "1"], 1: ["bsub", "-I", "-H", "sleep", "1"], 2: ["bwait", "-w", f"done({job})"]}
    waiting = [
        subprocess.Popen(words[n % 3], env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in range(MANY)
    ]
    one = "lavad" if through.startswith("lavad") else "agent-host2"
    wait_until(lambda: open_files(cluster)[one] >= before[one] + 0.6 * MANY, 120, lambda: f"{before} {open_files(cluster)}")
    for process in waiting:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(
        lambda: all(count <= before[name] + 5 for name, count in open_files(cluster).items()),
        30,
        lambda: f"{before} {open_files(cluster)}",
    )
    cluster.run("bkill 0", ok=False)
