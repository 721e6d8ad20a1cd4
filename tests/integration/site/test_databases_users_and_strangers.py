"""What a site leans on: PostgreSQL with two masters, simulated GPUs, users, waiting commands, frames of strangers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cli.local.daemons import find_pid
from tests.support.live.chaos import Chaos
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

NOBODY = 65534


def test_two_masters_on_postgres_lose_no_job(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    options = ("--masters", "2", "--database", "postgres")
    with Cluster(tmp_path / "cluster", hosts=2, slots=4, options=options) as cluster:
        chaos = Chaos(cluster, tmp_path, seed=7)
        thread = chaos.kill_daemons(["lavad", "lavad-2", "agent-host1"], (1.0, 3.0))
        try:
            chaos.submit(25)
        finally:
            chaos.calm(thread)
        chaos.check(120)


pytestmark = pytest.mark.cluster(hosts=2, options=("--gpus", "4"), reached_by_all=True)


def test_gpus_are_given_by_uuid_and_never_twice(cluster: Cluster, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    command = f"'echo $LAVA_HOST $CUDA_VISIBLE_DEVICES >>{tmp_path}/given; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'"
    jobs = [
        cluster.submit(f"-gpu num=2:j_exclusive=yes -o /dev/null {command}") for _ in range(5)
    ]  # five jobs of two exclusive GPUs on two hosts with four each: one must wait

    def given() -> list[str]:
        return (tmp_path / "given").read_text().splitlines() if (tmp_path / "given").exists() else []

    wait_until(lambda: len(given()) == 4, 20, "four jobs to run")
    taken = [gpu for line in given() for gpu in line.split()[1].split(",")]
    assert len(taken) == len(set(taken)) == 8
    assert all(gpu.startswith("GPU-") for gpu in taken)
    assert cluster.states(jobs[4]) == ["PEND"]
    (tmp_path / "go").touch()
    for job in jobs:
        cluster.wait_for(job, "DONE")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_jobs_of_another_user_run_and_write_as_that_user(cluster: Cluster) -> None:
    open_folder = cluster.folder.path.parent
    job = cluster.submit("-o u.out 'id -u; touch mine'", cwd=open_folder, user=NOBODY)
    cluster.wait_for(job, "DONE")
    assert (open_folder / "mine").stat().st_uid == NOBODY
    assert (open_folder / "u.out").stat().st_uid == NOBODY
    mine = cluster.submit("-o /dev/null sleep 100")
    refused = cluster.run(f"bkill {mine}", ok=False, user=NOBODY, cwd=open_folder)
    assert (refused.returncode, refused.stderr) == (255, f"Job <{mine}>: User permission denied\n")
    cluster.run(f"bkill {mine}")


def test_bsub_k_waits_and_returns_the_exit_code(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.run("bsub -K -o /dev/null 'exit 5'", ok=False, cwd=tmp_path)
    assert done.returncode == 5
    assert "<<Job is finished>>" in done.stderr


def test_bsub_k_of_an_array_waits_for_every_element_and_fails_as_the_first_that_does(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.run("bsub -K -J 'all[1-4]' -o /dev/null 'touch done.$LSB_JOBINDEX'", cwd=tmp_path)
    assert len(list(tmp_path.glob("done.*"))) == 4
    assert "<<Job is finished>>" in done.stderr
    done = cluster.run("bsub -K -J 'some[1-4]' -o /dev/null 'exit $((LSB_JOBINDEX / 2 * 2))'", ok=False, cwd=tmp_path)
    assert done.returncode == 2
    waiting = subprocess.Popen(["/bin/sh", "-c", "bsub -K -H -J 'held[1-4]' true"], env=cluster.environ, cwd=tmp_path)
    wait_until(lambda: cluster.run("bkill -J held 0", ok=False).returncode == 0, 20, "the array to be there")
    assert waiting.wait(30) == 126


def test_a_command_waits_for_a_master_that_is_away_and_submits_once(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kill("lavad")
    waiting = subprocess.Popen(
        ["/bin/sh", "-c", "bsub -o /dev/null -J once true"],
        env=cluster.environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == "batch system daemon not responding ... still trying\n"
    cluster.up()
    out, _ = waiting.communicate(timeout=30)
    assert waiting.returncode == 0
    assert "is submitted to default queue" in out
    assert cluster.run("bjobs -a -noheader -J once -o jobid").stdout.split() == [out.split("<")[1].split(">")[0]]


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x04nope",
        b"\x00\x00\x00\x02{}",
        b'\x00\x00\x00\x0e{"ask":"nosuch"}'[:18],
        b"\x00\x00\x00\x02\xff\xfe",
        b"",
        (lambda body: len(body).to_bytes(4, "big") + body)(b'{"ask":"submit","command":' + b"[" * 5000 + b"]" * 5000 + b"}"),
        (lambda body: len(body).to_bytes(4, "big") + body)(json.dumps({"ask": "submit", "command": "a\0b"}).encode()),
    ],
)
def test_malformed_frames_do_the_daemon_no_harm(cluster: Cluster, frame: bytes) -> None:
    for name in ("lavad.sock", "agent-host1.sock"):
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(30)
            link.connect(str(cluster.folder.run / name))
            link.sendall(frame)
            link.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := link.recv(65536):
                answer += piece
            # an agent that has just lost its master says so instead of passing the frame on
            assert not answer or b"refused" in answer or b"later" in answer
    assert "host1" in cluster.run("bhosts").stdout


def test_commands_through_an_agent_come_from_its_host(cluster: Cluster, tmp_path: Path) -> None:
    environ = dict(cluster.environ)
    cluster.environ["LAVA_SOCKET"] = str(cluster.folder.run / "agent-host2.sock")
    try:
        job = cluster.submit("-o /dev/null true", cwd=tmp_path)
    finally:
        cluster.environ = environ
    assert cluster.run(f"bjobs -a -noheader -o from_host {job}").stdout.strip() == "host2"


def test_a_frozen_agent_comes_back_with_its_jobs(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.submit(f"-m host2 -o /dev/null 'while [ ! -e {tmp_path}/go ]; do sleep 0.1; done'")
    cluster.wait_for(job, "RUN")
    cluster.kill("agent-host2", signal.SIGSTOP)
    cluster.wait_for(job, "UNKWN")
    cluster.kill("agent-host2", signal.SIGCONT)
    cluster.wait_for(job, "RUN")
    (tmp_path / "go").touch()
    cluster.wait_for(job, "DONE")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_nobody_else_can_take_the_masters_place_while_it_is_away(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kill("lavad")
    socket_path = cluster.folder.run / "master" / "lavad.sock"
    attack = f"import os, socket; s = socket.socket(socket.AF_UNIX); os.setuid({NOBODY}); s.%s({str(socket_path)!r})"
    for way in ("bind", "connect"):
        done = subprocess.run([sys.executable, "-c", attack % way], capture_output=True, text=True, check=False)
        assert "PermissionError" in done.stderr
    # in the place of the folder, one that belongs to somebody else
    kept = cluster.folder.run / "kept"
    (cluster.folder.run / "master").rename(kept)
    try:
        fake = cluster.folder.run / "master"
        fake.mkdir(0o700)
        os.chown(fake, NOBODY, NOBODY)
        log = cluster.folder.log / "agent-host1.log"
        wait_until(lambda: f"{fake} belongs to user {NOBODY}" in log.read_text(), 20, "the agent to refuse the folder")
        fake.rmdir()
    finally:
        kept.rename(cluster.folder.run / "master")
    cluster.up()
    assert not _tcp_sockets(find_pid(cluster.folder, "lavad"))
    job = cluster.submit("-o /dev/null true", cwd=tmp_path)
    cluster.wait_for(job, "DONE")


def _tcp_sockets(pid: int) -> set[str]:
    """The inodes of a process's TCP sockets."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]]
    open_files = {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}
    return {row[9] for row in rows if f"socket:[{row[9]}]" in open_files}
