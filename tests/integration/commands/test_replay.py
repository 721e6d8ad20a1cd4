"""`lava replay` of a real cluster: mixed jobs, a lost host, a master and a scheduler that died; all decisions again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

QUEUES = """
Begin Queue
QUEUE_NAME = urgent
PRIORITY = 80
PREEMPTION = PREEMPTIVE[normal fair]
End Queue

Begin Queue
QUEUE_NAME = fair
PRIORITY = 40
FAIRSHARE = USER_SHARES[[default, 1]]
End Queue

Begin Queue
QUEUE_NAME = big
PRIORITY = 60
SLOT_RESERVE = MAX_RESERVE_TIME[100]
End Queue
"""


def test_a_cluster_decides_the_same_again(tmp_path: Path) -> None:
    """The history of a cluster is enough to make its decisions again."""
    tmp_path.chmod(0o755)
    with Cluster(tmp_path, hosts=2, slots=4) as cluster:
        path = next(tmp_path.rglob("lsb.queues"))
        path.write_text(path.read_text() + QUEUES)
        cluster.run("badmin reconfig")
        arrays = [_mixed(cluster, 0)]
        scheduler = _child(cluster.pid("lavad"), "lava-sched")
        os.kill(scheduler, signal.SIGKILL)
        arrays.append(_mixed(cluster, 1))
        cluster.kill("lavad")
        cluster.up()
        again = cluster.submit("-r -n 4 -m host2 -J lost sleep 30")
        cluster.wait_for(again, "RUN")
        arrays.append(_mixed(cluster, 2))
        cluster.kill_host("host2")
        wait_until(lambda: cluster.run("bhosts -noheader -o status host2", ok=False).stdout.strip() != "ok", 20, "host2 away")
        cluster.run("bkill -q big 0", ok=False)
        assert cluster.run("lava replay").returncode == 0
        cluster.up()
        for array in arrays:
            cluster.wait_end(array, timeout=60)
        cluster.run("bkill 0", ok=False)
        _wait_idle(cluster)
        _check(cluster, tmp_path)


def _mixed(cluster: Cluster, turn: int) -> int:
    """Some of everything; the array of it, whose elements are all dispatched in the end."""
    array = cluster.submit(f"-J a{turn}[1-40]%3 true")
    first = cluster.submit("-q fair -n 2 sleep 0.5")
    cluster.submit(f"-w 'done({first})' -q fair true")
    cluster.submit(f"-w 'ended(a{turn})' -R 'rusage[mem=10]' true")
    cluster.submit("-W 1 -n 3 sleep 1")
    cluster.submit("-q big -n 8 -W 1 true")
    urgent = cluster.submit("-q urgent -n 4 sleep 0.3")
    for number in range(10):
        cluster.submit(f"-q {('normal', 'fair')[number % 2]} -sp {number + 1} sleep 0.1")
    cluster.wait_end(urgent)
    return array


def _child(pid: int, name: str) -> int:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        if head.partition("(")[2] == name and int(rest.split()[1]) == pid:
            return int(path.parent.name)
    raise AssertionError(f"lavad has no {name}")


def _wait_idle(cluster: Cluster) -> None:
    wait_until(lambda: "No unfinished job" in cluster.run("bjobs -u all", ok=False).stderr, 60, "all jobs to end")


def _check(cluster: Cluster, folder: Path) -> None:
    told = cluster.run("lava replay").stdout
    assert "equal: " in told
    assert cluster.run(f"lava replay --export {folder}/history.gz && lava replay --forgetful {folder}/history.gz").stdout
    found = json.loads(cluster.run("lava replay --json").stdout)
    assert found["first"] is None
    assert found["equal"] == found["plans"] > 50
    assert found["before"] == 0
    whatif = json.loads(cluster.run("lava whatif --add-hosts 2 --json").stdout)
    assert whatif["recorded"]["jobs"] == whatif["changed"]["jobs"] > 100
    assert whatif["changed"]["slots"] == whatif["recorded"]["slots"] + 8
    assert whatif["changed"]["mean_wait"] < whatif["recorded"]["mean_wait"]
    decided = found["decisions"]
    assert decided["JobDispatched"] > 120
    assert decided["JobSuspended"] > 0
