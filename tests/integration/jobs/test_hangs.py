"""What watches running jobs: ranks that hang are named by bjobs -l and bhist -l; numbers for a Prometheus."""

from __future__ import annotations

import os
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.collector import Collector, values
from tests.support.live.inside import pids_in
from tests.support.wait import wait_until

BUSY = "echo $$ >.p.$RANK; mv .p.$RANK pid.$RANK; while [ ! -e over ]; do :; done"


pytestmark = pytest.mark.cluster(hosts=2, slots=8, conf={"lsf.conf": "LAVA_HANG_TIME=2\nLAVA_METRICS_ADDRESS=@PORT@\n"})


def started(cluster: Cluster, folder: Path, name: str, script: str) -> tuple[int, list[int]]:
    """A job of four ranks on two hosts, and the processes of its ranks in their order."""
    own = folder / name
    own.mkdir()
    (own / "rank.sh").write_text(script)
    job = cluster.submit('-a pytorch -n 4 -R "span[ptile=2]" -o /dev/null sh rank.sh', cwd=own)
    return job, [pids_in(own, f"pid.{rank}", 1)[0] for rank in range(4)]


def test_a_stopped_rank_and_one_that_waits_are_named_and_balanced_ranks_are_not(cluster: Cluster, tmp_path: Path) -> None:
    """Host, process and what it waits on; nothing is said of a job whose ranks share too few cores alike."""
    tmp_path.chmod(0o755)
    balanced, _ = started(cluster, tmp_path, "balanced", BUSY)
    stopped, ranks = started(cluster, tmp_path, "stopped", BUSY)
    waits = "[ $RANK = 3 ] && { echo $$ >pid.3; mkfifo pipe; read line <pipe; }; " + BUSY
    waiting, _ = started(cluster, tmp_path, "waiting", waits)
    os.kill(ranks[2], signal.SIGSTOP)

    def told(job: int) -> str:
        return cluster.run(f"bjobs -l -UF {job}").stdout

    wait_until(lambda: "is stopped" in told(stopped), 40, lambda: told(stopped))
    assert re.search(rf"Rank <2> on host <host[12]> \(process <{ranks[2]}>\) is stopped, for \d+ seconds;", told(stopped))
    wait_until(lambda: "seems to hang" in told(waiting), 40, lambda: told(waiting))
    found = re.search(r"Rank <3> on host <host[12]> .* while the other ranks are busy; it waits in <(.*)>;", told(waiting))
    assert found, told(waiting)
    assert "openat" in found[1] or "fifo" in found[1]
    cluster.run(f"bkill {waiting}")
    os.kill(ranks[2], signal.SIGCONT)
    wait_until(lambda: "is stopped" not in told(stopped), 40, lambda: told(stopped))
    history = re.sub(r"\n {10,}", "", cluster.run(f"bhist -l {stopped}").stdout)
    assert re.search(r"is stopped.*\n.*No rank seems to hang any more", history), history
    assert "Rank <" not in told(balanced) + cluster.run(f"bhist -l {balanced}").stdout
    cluster.run("bkill 0")
    for job in (balanced, stopped, waiting):
        cluster.wait_end(job)


def test_a_prometheus_counts_good_and_bad_jobs_and_a_collector_gets_traces(cluster: Cluster, tmp_path: Path) -> None:
    """Three good and two bad jobs of a kind; the page survives a new master, which sends the life of a job as spans."""
    words = '-a mpi -n 2 -R "span[ptile=1]" -o /dev/null'
    jobs = [cluster.submit(f"{words} {command}", cwd=tmp_path) for command in ("true", "true", "true", "false", "false")]

    _, _, port = (cluster.folder.conf / "lsf.conf").read_text().partition("LAVA_METRICS_ADDRESS=")

    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port.split()[0]}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    for job in jobs:
        cluster.wait_end(job)
    text = page()
    assert 'lava_jobs_ended_total{kind="mpi",queue="normal",state="DONE"} 3.0' in text
    assert 'lava_jobs_ended_total{kind="mpi",queue="normal",state="EXIT"} 2.0' in text
    assert 'lava_jobs_submitted_total{kind="mpi",queue="normal"} 5.0' in text
    assert 'lava_gang_prepare_seconds_count{kind="mpi",queue="normal"} 5.0' in text
    assert 'lava_launch_seconds_count{kind="mpi",queue="normal"} 5.0' in text
    with Collector() as collector:
        with (cluster.folder.conf / "lsf.conf").open("a") as conf:
            conf.write(f"LAVA_TRACES={collector.address}\n")
        cluster.kill("lavad")
        cluster.up()
        assert 'lava_hosts{state="ok"} 2.0' in page()
        job = cluster.submit(f"{words} true", cwd=tmp_path)
        wait_until(lambda: collector.spans, 30, "spans of a job")
    roots = [values(span)["lava.job_id"] for span in collector.spans if span.name == "job"]
    hosts = {values(span)["lava.host"] for span in collector.spans if span.name == "part"}
    assert (roots, hosts) == ([str(job)], {"host1", "host2"})
