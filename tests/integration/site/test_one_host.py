"""One host, plain jobs: submitted, run, seen, ended; lavad killed in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli.local.daemons import find_pid
from proto.daemon.cpu_precedence import NICENESS
from tests.support.autogroups import needs_precedence
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def test_a_job_runs_and_its_output_is_in_the_file_it_named(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-o out.%J echo hello", cwd=tmp_path)
    cluster.wait_for(job, "DONE")
    text = wait_until(lambda: (tmp_path / f"out.{job}").read_text(), 30, "output")
    assert "hello\n" in text


@needs_precedence
def test_on_a_busy_host_daemons_go_before_jobs(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-o n.out 'cat /proc/self/autogroup; echo of $(nice)'", cwd=tmp_path)
    cluster.wait_for(job, "DONE")
    text = wait_until(lambda: (tmp_path / "n.out").read_text(), 30, "output")
    assert f"nice 0\nof {os.getpriority(os.PRIO_PROCESS, 0)}\n" in text
    for name in ("lavad", "agent-host1"):
        assert Path(f"/proc/{find_pid(cluster.folder, name)}/autogroup").read_text().endswith(f"nice {NICENESS}\n")


def test_an_exit_code_is_kept(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-o /dev/null 'exit 3'", cwd=tmp_path)
    cluster.wait_for(job, "EXIT")
    assert cluster.run(f"bjobs -noheader -o exit_code {job}").stdout.strip() == "3"


def test_an_array_runs_every_element_once(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-J 'a[1-20]%3' -o a.%J.%I 'echo element $LSB_JOBINDEX'", cwd=tmp_path)
    assert len(cluster.wait_for(job, "DONE", timeout=60)) == 20
    for index in range(1, 21):
        lines = (tmp_path / f"a.{job}.{index}").read_text().splitlines()
        assert lines.count(f"element {index}") == 1


def test_bkill_ends_a_running_job_and_all_it_started(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-o k.out 'setsid sleep 1000 & echo $! >pid; sleep 1000'", cwd=tmp_path)
    cluster.wait_for(job, "RUN")
    pid = int(wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), 30, "pid"))
    cluster.run(f"bkill {job}")
    cluster.wait_for(job, "EXIT", timeout=40)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), 30, "the daemonised child to be gone")


def test_a_running_job_survives_the_death_of_lavad(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit("-o s.out 'while [ ! -e go ]; do sleep 0.1; done; exit 7'", cwd=tmp_path)
    cluster.wait_for(job, "RUN")
    cluster.kill("lavad")
    cluster.up()
    assert cluster.states(job) == ["RUN"]
    (tmp_path / "go").touch()
    cluster.wait_for(job, "EXIT")
    assert cluster.run(f"bjobs -noheader -o exit_code {job}").stdout.strip() == "7"


@pytest.mark.cluster(environ={"LAVA_NATIVE": "N"})
def test_jobs_go_by_python_where_lava_up_is_told_so(own_cluster: Cluster) -> None:
    assert "by Python: LAVA_NATIVE=N\n" in (own_cluster.folder.log / "starter-host1.log").read_text()
