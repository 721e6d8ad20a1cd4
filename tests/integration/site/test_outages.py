"""What a host leans on goes away: its directory of users fails, hangs or forgets, a mount is gone, its health check fails.

The agent of host2 (and its starter, where that matters) has a mount namespace of its own, in which /etc or a folder is replaced.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.namespace import Apart, why_not
from tests.support.wait import wait_until

USERS = {"fails": 1, "hangs": 2, "forgets": 3}
"""Users of the file; root and nobody systemd knows by itself. One a test: an agent remembers those that it has looked up."""
HEALTH = """\
#!/bin/sh
[ ! -e @FOLDER@/sick ] || { echo "no scratch disk"; exit 1; }
"""
pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
    pytest.mark.cluster(hosts=2, slots=2, reached_by_all=True),
]


@pytest.fixture
def apart(cluster: Cluster) -> Iterator[Apart]:
    """host2's agent and starter in a mount namespace of their own, with nothing replaced."""
    with Apart(cluster, "host2") as made:
        yield made


def status(cluster: Cluster, host: str) -> str:
    return cluster.run(f"bhosts -w -noheader {host}").stdout.split()[1]


def told(cluster: Cluster, command: str) -> str:
    """What a command prints, without its line breaks."""
    return cluster.run(command).stdout.replace("\n                     ", "")


def submitted(cluster: Cluster, words: str, how: str = "fails") -> int:
    return cluster.submit(words, user=USERS[how], cwd=Path("/tmp"))


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """What hangs whoever opens it."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def forgets(tmp_path: Path) -> Path:
    """/etc/passwd with root alone."""
    (tmp_path / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    return tmp_path / "passwd"


def fails(tmp_path: Path) -> Path:
    """What nobody can open in place of /etc/passwd: a socket. A service that is not there would be no failure to glibc 2.41."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "passwd"))
    return tmp_path / "passwd"


def files_alone(tmp_path: Path) -> Path:
    """/etc/nsswitch.conf with no other service, which would be asked then."""
    (tmp_path / "nsswitch").write_text("passwd: files\ngroup: files\n")
    return tmp_path / "nsswitch"


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_host_whose_directory_is_away_ends_no_job_and_comes_back(
    cluster: Cluster, apart: Apart, how: str, tmp_path: Path, fifo: Path
) -> None:
    """Its heartbeats go on, it is closed with the reason, and opens by itself."""
    apart.replace("/etc/nsswitch.conf", files_alone(tmp_path))
    apart.replace("/etc/passwd", fifo if how == "hangs" else fails(tmp_path))
    jobs = [submitted(cluster, "-o /dev/null sleep 1", how) for _ in range(4)]
    for job in jobs:
        cluster.wait_for(job, "DONE", timeout=90)
        assert cluster.run(f"bjobs -a -noheader -o exec_host {job}").stdout.split() == ["host1"]
    wait_until(lambda: status(cluster, "host2") == "closed_Adm", 40, "host2 to be closed")
    # whichever comes first, the agent's word or that of the jobs
    said = re.search(r'ADMIN ACTION COMMENT: "(.*)"', cluster.run("bhosts -l host2").stdout)
    assert said
    assert re.match("users cannot be looked up|[0-9] jobs in a row could not start: host host2 cannot look up user", said[1])
    assert f"closed by administrator <lava> {said[1]}" in told(cluster, "badmin hhist host2")
    apart.restore("/etc/passwd")
    if how == "hangs":
        answer(fifo)
    wait_until(lambda: status(cluster, "host2") == "ok", 60, "host2 to be open again")
    cluster.wait_for(submitted(cluster, "-m host2 -o /dev/null true", how), "DONE", timeout=60)


def answer(fifo: Path) -> None:
    """Whoever waits for the directory gets the users at last."""
    for _ in range(8):
        with contextlib.suppress(OSError):
            end = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            os.write(end, Path("/etc/passwd").read_bytes())
            os.close(end)


def test_a_host_that_has_forgotten_a_user_loses_the_job_to_one_that_has_not(
    cluster: Cluster, apart: Apart, tmp_path: Path
) -> None:
    apart.replace("/etc/passwd", forgets(tmp_path))
    job = submitted(cluster, "-m 'host2+1 host1' -o /dev/null true", "forgets")
    cluster.wait_for(job, "DONE", timeout=60)
    assert cluster.run(f"bjobs -a -noheader -o exec_host {job}").stdout.split() == ["host1"]
    assert "not known on host host2" in told(cluster, f"bhist -l {job}")


def test_a_host_without_a_mount_loses_the_job_to_one_that_has_it(cluster: Cluster, apart: Apart, tmp_path: Path) -> None:
    """A folder that no host has still ends the job; checkpoints do not go where the other host would not find them."""
    work = cluster.folder.path.parent / "work"
    (work / "here").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    apart.replace(str(work), tmp_path / "empty")
    words = f"-env 'all, LSB_EXIT_IF_CWD_NOTEXIST=Y' -m 'host2+1 host1' -cwd {work}/@ -o /dev/null true"
    job = submitted(cluster, words.replace("@", "here"))
    cluster.wait_for(job, "DONE", timeout=60)
    assert cluster.run(f"bjobs -a -noheader -o exec_host {job}").stdout.split() == ["host1"]
    nowhere = submitted(cluster, words.replace("@", "nowhere"))
    cluster.wait_for(nowhere, "EXIT", timeout=60)
    assert cluster.run(f"bjobs -a -noheader -o exit_code {nowhere}").stdout.split() == ["2"]
    work.chmod(0o777)
    why = f"-k: {work}/ck is not the same on host1 and host2: a file that one has is not on the other"
    (tmp_path / "pack").write_text(f"-k {work}/ck sleep 1000\n-k {work}/ck sleep 2000\n")
    packed = cluster.run(f"bsub -pack {tmp_path}/pack", ok=False)
    assert (packed.returncode, packed.stderr.count(why)) == (255, 2), packed.stderr
    said = cluster.run(f"bsub -k {work}/ck sleep 1000", ok=False, user=USERS["fails"], cwd=Path("/tmp"))
    assert (said.returncode, said.stderr) == (255, f"{why}. Job not submitted.\n")
    assert [path.name for path in work.iterdir()] == ["here"]
    submitted(cluster, f"-k {work}/ck -m host1 true")


def test_a_host_that_is_not_well_takes_no_jobs_until_it_is(cluster: Cluster, apart: Apart) -> None:
    folder = cluster.folder.path.parent
    program = folder / "health"
    program.write_text(HEALTH.replace("@FOLDER@", str(folder)))
    program.chmod(0o755)
    folder.chmod(0o755)
    apart.again({"LAVA_HEALTH": str(program), "LAVA_HEALTH_PERIOD": "1"})
    (folder / "sick").touch()
    wait_until(lambda: status(cluster, "host2") == "closed_Adm", 30, "host2 to be closed")
    assert 'ADMIN ACTION COMMENT: "no scratch disk"' in cluster.run("bhosts -l host2").stdout
    assert "host2" in cluster.run("bhosts -x").stdout
    cluster.kill("lavad")
    cluster.up()
    assert status(cluster, "host2") == "closed_Adm"
    (folder / "sick").unlink()
    wait_until(lambda: status(cluster, "host2") == "ok", 30, "host2 to be open")
