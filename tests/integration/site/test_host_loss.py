"""Whole hosts, starters and shepherds die: rerunnable jobs run elsewhere, the others say honestly what is known."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from cli.local.daemons import children
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(hosts=2)


@pytest.fixture
def cluster(own_cluster: Cluster) -> Cluster:
    """One of each test: its hosts are lost."""
    return own_cluster


def exec_host(cluster: Cluster, job: int) -> str:
    return cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip()


def test_a_rerunnable_job_runs_elsewhere_when_its_host_dies(cluster: Cluster, tmp_path: Path) -> None:
    """Only the lost host's jobs are touched."""
    command = f"'echo $LAVA_HOST >>{tmp_path}/ran; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'"
    job = cluster.submit(f"-r -m 'host2+5 host1' -o /dev/null {command}")
    ran = tmp_path / "ran"
    wait_until(lambda: ran.exists() and ran.read_text().endswith("\n"), 30, lambda: "the first run\n" + cluster.logs())
    first = exec_host(cluster, job)
    other = cluster.submit(f"-m {'host1' if first == 'host2' else 'host2'} -o /dev/null sleep 60")
    cluster.wait_for(other, "RUN")
    cluster.kill_host(first)
    wait_until(lambda: len(ran.read_text().split()) == 2, 60, lambda: "the second run\n" + cluster.logs())
    assert exec_host(cluster, job) != first
    (tmp_path / "go").touch()
    cluster.wait_for(job, "DONE")
    assert len(ran.read_text().split()) == 2
    assert cluster.states(other) == ["RUN"]


def test_a_job_that_must_not_run_twice_is_unkwn_while_its_host_is_silent(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(f"-m host2 -o /dev/null 'while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 4'")
    cluster.wait_for(job, "RUN")
    cluster.kill("agent-host2", signal.SIGKILL)
    cluster.wait_for(job, "UNKWN")
    cluster.up()
    cluster.wait_for(job, "RUN")
    (tmp_path / "go").touch()
    cluster.wait_for(job, "EXIT")
    assert cluster.run(f"bjobs -noheader -o exit_code {job}").stdout.strip() == "4"


def shepherd_of(cluster: Cluster, host: str, job: int) -> int:
    """The job's shepherd, once the job's command runs: a job is RUN from its dispatch on."""
    starter, title = cluster.pid(f"starter-{host}"), f"lava-shepherd {job}"

    def found() -> list[int]:
        shepherds = [child for child in psutil.Process(starter).children() if command_line(child) == title]
        return [one.pid for one in shepherds if any("sleep" in command_line(task) for task in one.children(recursive=True))]

    (shepherd,) = wait_until(found, 20, lambda: f"the shepherd of job {job} and its command\n" + cluster.logs())
    return shepherd


def command_line(process: psutil.Process) -> str:
    """Its command line, "" of a process that is gone."""
    try:
        return " ".join(process.cmdline()).strip()
    except psutil.NoSuchProcess:
        return ""


def test_a_dead_starter_takes_its_jobs_with_it_and_says_so(cluster: Cluster) -> None:
    job = cluster.submit("-m host2 -o /dev/null 'setsid sleep 1000 & sleep 1000'")
    shepherd_of(cluster, "host2", job)
    tree = children([cluster.pid("starter-host2")]) - {cluster.pid("starter-host2")}
    cluster.kill("starter-host2")
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree), 15, "all its processes to be gone")
    cluster.up()
    cluster.wait_for(job, "EXIT", timeout=30)
    assert "lost" in cluster.run(f"bhist -l {job}").stdout + cluster.run(f"bjobs -l {job}").stdout


def test_a_dead_shepherd_ends_its_job_as_lost(cluster: Cluster) -> None:
    job = cluster.submit("-m host2 -o /dev/null sleep 1000")
    shepherd = shepherd_of(cluster, "host2", job)
    pids = children([shepherd])
    os.kill(shepherd, signal.SIGKILL)
    cluster.wait_for(job, "EXIT", timeout=30)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids - {shepherd}), 30, "its processes gone")


def test_a_second_agent_of_a_hosts_name_starts_none_of_its_jobs_again(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(f"-r -m host2 'echo begun >> {tmp_path}/begun; sleep 600'")
    wait_until((tmp_path / "begun").exists, 30, "the job")
    argv = Path(f"/proc/{cluster.pid('agent-host2')}/cmdline").read_text().rstrip("\0").split("\0")
    for name in ("--run", "--spool", "--log", "--pidfile"):
        argv[argv.index(name) + 1] = str(tmp_path / name.strip("-"))
    log, lavads = tmp_path / "log", cluster.folder.log / "lavad.log"
    second = subprocess.Popen(argv)
    try:
        refused = "another agent, with another folder, is connected as host host2"
        wait_until(lambda: log.exists() and refused in log.read_text(), 30, cluster.logs)
        cluster.kill("agent-host2")
        wait_until(lambda: "another agent, with another folder, has jobs on host host2" in lavads.read_text(), 30, cluster.logs)
        cluster.up()
        wait_until(lambda: cluster.run("bhosts -noheader host2").stdout.split()[1] == "ok", 30, cluster.logs)
    finally:
        second.kill()
        second.wait()
        os.kill(int((tmp_path / "run" / "starter-host2.pid").read_text()), signal.SIGTERM)
    assert cluster.states(job) == ["RUN"]
    assert (tmp_path / "begun").read_text() == "begun\n"
    cluster.run(f"bkill -s KILL {job}")
    cluster.wait_end(job)
