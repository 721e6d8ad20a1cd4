"""More of LSF's commands on a real cluster: messages, forced runs, waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("more")) as found:
        yield found


def test_messages(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-H sleep 100")
    assert cluster.run(f"bread {job}").stdout == f"Job {job} has no posted messages\n"
    assert cluster.run(f"bpost -d 'my message' {job}").stdout == f"Message to job {job} posted all right.\n"
    lines = cluster.run(f"bread {job}").stdout.splitlines()
    assert lines[0] == f"Messages posted to jobID {job}"
    assert lines[1].startswith("POST_TIME: ")
    assert lines[1].endswith("  MESSAGE: my message")
    (tmp_path / "data").write_text("attached\n")
    cluster.run(f"bpost -i 2 -a {tmp_path}/data {job}")
    assert cluster.run(f"bread -a -i 2 {job}").stdout == "attached\n"
    assert "my message" in cluster.run(f"bstatus {job}").stdout
    done = cluster.run("bpost -d x 99999", ok=False)
    assert (done.returncode, done.stderr) == (255, "lsb_jobmsg(): No matching job found\n")
    waits = cluster.submit(f"-w 'external({job}, \"go on\")' true")
    cluster.run(f"bpost -i 3 -d 'go on' {job}")
    assert cluster.wait_end(waits) == ["DONE"]
    cluster.run(f"bkill {job}")
    cluster.wait_end(job)
    assert "my message" in cluster.run(f"bread {job}").stdout


def test_a_forced_run(cluster: Cluster) -> None:
    cluster.run("badmin qinact normal")
    job = cluster.submit("true")
    assert cluster.run(f"brun -m host1 {job}").stdout == f"Job <{job}> is being forced to run.\n"
    assert cluster.wait_end(job) == ["DONE"]
    cluster.run("badmin qact normal")


def test_a_wait(cluster: Cluster) -> None:
    job = cluster.submit("sleep 1")
    assert cluster.run(f"bwait -w 'done({job})'").returncode == 0
    done = cluster.run(f"bwait -w 'exit({job})'", ok=False)
    assert (done.returncode, done.stderr) == (255, f"Wait condition <exit({job})> can never be satisfied\n")
