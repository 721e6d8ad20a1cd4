"""PostgreSQL is stopped and started again: jobs run on, the daemons stay, and afterwards everything is there. And which
configuration is in force where another master takes over, or the same one again: what ``badmin reconfig`` read last.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.client.client import STILL_TRYING
from tests.support.live.cluster import Cluster
from tests.support.processes import is_alive
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(slots=4, options=("--database", "postgres"), reached_by_all=True)

PROGRAM = """
import sys
import lava_client
cluster = lava_client.Cluster()
killed = cluster.link.kill([sys.argv[1] + "[1]", sys.argv[1] + "[2]"])
jobs = cluster.submit_many(["echo once >> of_python"], output="/dev/null")
print(len(killed) == 2, len(jobs) == 1, jobs[0].result(100))
"""
LATE = "Begin Queue\nQUEUE_NAME = late\nPRIORITY = 7\nEnd Queue\n"
WRONG = "Begin Queue\nQUEUE_NAME = wrong\nPRIORITY = x\nEnd Queue\n"
LATER = "Begin Queue\nQUEUE_NAME = later\nPRIORITY = 8\nEnd Queue\n"


def postmaster(cluster: Cluster) -> int:
    """The process of the private PostgreSQL."""
    return int((cluster.folder.path / "postgres" / "data" / "postmaster.pid").read_text().split()[0])


def test_an_outage_of_the_database_costs_no_job_and_no_daemon(cluster: Cluster, tmp_path: Path) -> None:
    """A job ends meanwhile; what is submitted or killed meanwhile is so, once, when the database is back."""
    lavad, agent = cluster.pid("lavad"), cluster.pid("agent-host1")
    job = cluster.submit("-o /dev/null 'touch began; while [ ! -e go ]; do sleep 0.1; done; echo once >> ended'", cwd=tmp_path)
    others = cluster.submit("-J 'others[1-2]' -o /dev/null sleep 1000", cwd=tmp_path)
    wait_until((tmp_path / "began").exists, 30, cluster.logs)
    server = postmaster(cluster)
    os.kill(server, signal.SIGINT)
    wait_until(lambda: not is_alive(server), 30, "PostgreSQL to be gone")
    with (tmp_path / "said").open("w") as said:
        words = ["bsub", "-o", "/dev/null", "echo once >> late"]
        asked = subprocess.Popen(words, cwd=tmp_path, env=cluster.environ, stderr=said)
    program = [sys.executable, "-c", PROGRAM, str(others)]
    of_python = subprocess.Popen(program, cwd=tmp_path, env=cluster.environ, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: STILL_TRYING.strip() in (tmp_path / "said").read_text(), 30, "bsub to wait")
    (tmp_path / "go").touch()
    wait_until((tmp_path / "ended").exists, 30, "the job to end")
    shown = cluster.run("bjobs -a", ok=False, timeout=100)
    assert "internal error" not in shown.stdout + shown.stderr
    cluster.up()
    cluster.wait_for(job, "DONE", timeout=90)
    assert asked.wait(120) == 0
    assert of_python.communicate(timeout=120)[0] == "True True 0\n"
    wait_until((tmp_path / "late").exists, 60, "the job that was submitted meanwhile")
    assert "postgres" not in (tmp_path / "said").read_text()
    assert "Traceback" not in (cluster.folder.log / "lavad.log").read_text()
    after = cluster.submit("-o /dev/null 'echo once >> after'", cwd=tmp_path)
    cluster.wait_for(after, "DONE", timeout=60)
    names = ("ended", "late", "of_python", "after")
    assert {name: (tmp_path / name).read_text() for name in names} == dict.fromkeys(names, "once\n")
    assert (cluster.pid("lavad"), cluster.pid("agent-host1")) == (lavad, agent)


def test_a_master_that_starts_while_its_database_is_away_waits_for_it(cluster: Cluster) -> None:
    """And says so in its log, once; commands wait as they do for a standby. Told to end meanwhile, it ends."""
    words = Path(f"/proc/{cluster.pid('lavad')}/cmdline").read_bytes().split(b"\0")[:-1]
    words = [word for word in words if word != b"--no-wait"]
    cluster.kill("lavad")
    server = postmaster(cluster)
    os.kill(server, signal.SIGINT)
    wait_until(lambda: not is_alive(server), 30, "PostgreSQL to be gone")
    log = cluster.folder.log / "lavad.log"

    def refusals() -> int:
        return log.read_text().count("the store cannot be opened: ")

    for sign in (signal.SIGTERM, None):
        before = refusals()
        waiting = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/", env=cluster.environ)
        wait_until(lambda: refusals() > before, 30, cluster.logs)  # noqa: B023
        if sign is not None:
            waiting.send_signal(sign)
            assert waiting.wait(30) == 0
    assert refusals() == 2
    cluster.up()
    assert cluster.pid("lavad") == waiting.pid
    assert "the store can be opened" in log.read_text()
    assert "Traceback" not in log.read_text()
    cluster.wait_for(cluster.submit("-o /dev/null true"), "DONE", timeout=60)


def test_a_new_cluster_whose_database_is_away_is_not_made(cluster: Cluster, tmp_path: Path) -> None:
    done = cluster.lava("up", "--dir", str(tmp_path / "other"), "--database", "postgresql://lavad@127.0.0.1:1/lava")
    assert done.returncode == 1
    assert "port 1 failed" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "other" / "shape.json").exists()


def reconfigured(cluster: Cluster, text: str) -> Path:
    """lsb.queues, with a queue more that is in force."""
    queues = cluster.folder.conf / "lsb.queues"
    queues.write_text(queues.read_text() + text)
    cluster.run("badmin reconfig -f")
    return queues


def queues_of(cluster: Cluster) -> set[str]:
    """Once there is a master."""
    return {line.split()[0] for line in cluster.run("bqueues", timeout=120).stdout.splitlines()[1:]}


def test_a_standby_takes_over_with_the_configuration_of_now(tmp_path: Path) -> None:
    """Not with that of its own start. Where its files are wrong, what was in force stays, and showstatus says so."""
    tmp_path.chmod(0o755)
    options = ("--masters", "2", "--database", "postgres")
    with Cluster(tmp_path / "cluster", options=options) as cluster:
        queues = reconfigured(cluster, LATE)
        job = cluster.submit("-q late -o /dev/null sleep 1000")
        said = [(cluster.folder.log / f"{name}.log").read_text().count("master of cluster") for name in ("lavad", "lavad-2")]
        first, second = ("lavad", "lavad-2") if said[0] else ("lavad-2", "lavad")
        cluster.kill(first)
        assert "late" in queues_of(cluster)
        cluster.up()
        standing_by = "standby: "
        wait_until(lambda: (cluster.folder.log / f"{first}.log").read_text().count(standing_by), 30, cluster.logs)
        whole = queues.read_text()
        queues.write_text(whole + LATER + WRONG)
        cluster.kill(second)
        assert queues_of(cluster) >= {"late", "normal"}

        def told() -> bool:
            return "lsb.queues:" in cluster.run("badmin showstatus", timeout=120).stdout

        wait_until(told, 30, cluster.logs)
        assert "'x' is not a whole number" in cluster.run("lava status", ok=False).stdout
        assert not queues_of(cluster) & {"later", "wrong"}
        queues.write_text(whole + LATER)
        cluster.run("badmin reconfig -f")
        assert queues_of(cluster) >= {"late", "later"}
        wait_until(lambda: not told(), 30, cluster.logs)
        assert cluster.states(job) == ["RUN"]


def test_a_master_that_has_its_office_again_keeps_what_was_read_last(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", options=("--database", "postgres")) as cluster:
        reconfigured(cluster, LATE)
        log = cluster.folder.log / "lavad.log"
        server = postmaster(cluster)
        os.kill(server, signal.SIGINT)
        wait_until(lambda: not is_alive(server), 30, "PostgreSQL to be gone")
        wait_until(lambda: "no longer master" in log.read_text(), 90, cluster.logs)
        cluster.up()
        assert "late" in queues_of(cluster)
