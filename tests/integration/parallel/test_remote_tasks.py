"""lsplace, lsrun and lsgrun on a real cluster, with LSF's words."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.support.live.cluster import Cluster

pytestmark = pytest.mark.cluster(hosts=2)


def test_places(cluster: Cluster) -> None:
    assert cluster.run("lsplace").stdout in ("host1 \n", "host2 \n")
    assert set(cluster.run("lsplace -n 2").stdout.split()) == {"host1", "host2"}
    assert cluster.run("lsplace host2").stdout == "host2 \n"
    assert cluster.run("lsplace -R 'select[hname==host1]'").stdout == "host1 \n"
    assert len(cluster.run("lsplace -L -n 0").stdout.split()) == len(cluster.run("lsplace -w 0").stdout.split()) >= 2
    for words, text, status in (
        ("-n 1000000", "lsplace: Not enough host(s) currently eligible\n", 1),
        ("-R 'select[mem>99999999]'", "lsplace: Not enough host(s) currently eligible\n", 1),
        ("nosuch", "main: invalid hostname nosuch\n", 255),
        ("-n x", "lsplace: bad number of hosts: x\n", 255),
    ):
        done = cluster.run(f"lsplace {words}", ok=False)
        assert (done.stdout, done.stderr, done.returncode) == ("", text, status)


def test_a_task(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.run("lsrun -m host2 'cat; echo err >&2; echo $LSB_HOSTS; exit 7'", ok=False, stdin="in\n")
    assert (done.stdout, done.stderr, done.returncode) == ("in\nhost2\n", "err\n", 7)
    assert cluster.run("lsrun -v -m host1 echo hi").stderr == "<<Execute echo on remote host host1>>\n"
    done = cluster.run("lsrun -m nosuch hostname", ok=False)
    words = "lsrun: ls_rtaske() failed on host nosuch: Bad host name\nls_rwait(): No remote child\n"
    assert (done.stdout, done.stderr, done.returncode) == ("", words, 0)
    done = cluster.run("lsrun -R 'select[mem>99999999]' hostname", ok=False, timeout=20)
    assert (done.stdout, done.stderr, done.returncode) == ("", "lsrun: Not enough host(s) currently eligible\n", 1)


def test_a_task_that_waits_says_why(cluster: Cluster) -> None:
    """It waited without a word for a host that was closed."""
    cluster.run("badmin hclose -C disk host2")
    try:
        words = ["/bin/sh", "-c", "lsrun -m host2 'echo on $LSB_HOSTS'"]
        with subprocess.Popen(words, env=cluster.environ, stdout=PIPE, stderr=PIPE, text=True) as task:
            assert task.stderr is not None
            line = task.stderr.readline()
            cluster.run("badmin hopen host2")
            out, rest = task.communicate(timeout=60)
    finally:
        cluster.run("badmin hopen host2")
    job = line.split("<")[1].split(">")[0]
    assert line == f"lsrun: job <{job}> for host host2 waits: Closed by LSF administrator: 1 host\n"
    assert (out, rest, task.returncode) == ("on host2\n", "", 0)


def test_a_task_that_waits_and_is_ended_by_two_signals_leaves_nothing(cluster: Cluster) -> None:
    """As a terminal that closes and ``timeout`` send them: the second one was an internal error, and the job could stay."""
    ends = (signal.SIGTERM, signal.SIGHUP)
    cluster.run("badmin hclose -C disk host2")
    try:
        with subprocess.Popen(["lsrun", "-m", "host2", "true"], env=cluster.environ, stderr=PIPE, text=True) as task:
            assert task.stderr is not None
            line = task.stderr.readline()
            for one in ends:
                task.send_signal(one)
            rest = task.communicate(timeout=60)[1]
    finally:
        cluster.run("badmin hopen host2")
    assert (rest, task.returncode - 128 in ends) == ("", True)
    assert cluster.wait_end(line.split("<")[1].split(">")[0]) == ["EXIT"]


def test_a_task_on_each_host(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("host2\nhost1\n")
    assert cluster.run("lsgrun -f hosts 'echo $LSB_HOSTS'", cwd=tmp_path).stdout == "host2\nhost1\n"
    done = cluster.run("lsgrun -p -m 'host1 host2' 'echo $LSB_HOSTS; exit 3'", ok=False)
    assert (sorted(done.stdout.split()), done.returncode) == (["host1", "host2"], 3)
    typed = cluster.run("lsgrun -R 'select[hname==host2]' -n 1", stdin="echo typed\n")
    assert typed.stdout.endswith("typed\n")
    assert cluster.run("lsgrun true", ok=False).returncode == 255


def test_a_host_file(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("# of mine\nhost2 2\nhost1\n")
    done = cluster.run("bsub -I -hostfile hosts 'echo $LSB_MCPU_HOSTS'", cwd=tmp_path)
    assert done.stdout.splitlines()[1:] == ["host2 2 host1 1"]
    done = cluster.run("bsub -hostfile hosts -n 2 true", cwd=tmp_path, ok=False)
    assert (done.returncode, done.stderr) == (255, "-hostfile and -n cannot be given together. Job not submitted.\n")
