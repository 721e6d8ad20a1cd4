"""Jobs of one cluster with software of their own: environments, containers, login shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.image import make_image
from tests.support.live.inside import said
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(hosts=2)


def environment(folder: Path, version: str) -> Path:
    """A real virtual environment with a package of this version."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dummy.py").write_text(f"version = {version!r}\n")
    return folder


MEET = (
    "import dummy, os, time\nopen(f'{dummy.version}.{os.environ.get(\"RANK\", 0)}', 'w')\n"
    + """
while not all(os.path.exists(f'{v}.0') for v in ('1.0', '2.0')):
    time.sleep(0.02)
print(dummy.version, os.environ['LAVA_HOST'])
"""
)


def test_two_jobs_at_once_have_their_own_versions(cluster: Cluster, tmp_path: Path) -> None:
    """The same program, at the same time, on all ranks of one of them too."""
    (tmp_path / "meet.py").write_text(MEET)
    one, two = environment(tmp_path / "one", "1.0"), environment(tmp_path / "two", "2.0")
    first = cluster.submit(f'-a "venv({one})" -o 1.out python meet.py', cwd=tmp_path)
    second = cluster.submit(f'-a "pytorch venv({two})" -n 2 -R "span[ptile=1]" -o 2.out python meet.py', cwd=tmp_path)
    for job in (first, second):
        cluster.wait_for(job, "DONE")
    assert said(tmp_path / "1.out").startswith("1.0 host")
    assert sorted(said(tmp_path / "2.out").splitlines()) == ["2.0 host1", "2.0 host2"]


def test_what_one_host_lacks_ends_the_whole_job_with_one_reason(cluster: Cluster, tmp_path: Path) -> None:
    """An interpreter that is not there on one host: one reason, no rank is left."""
    (tmp_path / "rank.sh").write_text('[ $LAVA_HOST = host1 ] && exec sleep 1000\nexec "$PWD/no-such-python" x.py\n')
    job = cluster.submit('-a mpi -n 4 -R "span[ptile=2]" -o out sh rank.sh', cwd=tmp_path)
    cluster.wait_for(job, "EXIT", timeout=20)
    text = cluster.run(f"bjobs -l -UF {job}").stdout
    assert "ended with exit code 127 on host2" in text
    wait_until(lambda: "sleep" not in "".join(_commands(cluster)), 30, "no orphan")
    missing = cluster.submit('-a "pytorch venv(/no/such)" -n 4 -R "span[ptile=2]" -o missing.out python x.py', cwd=tmp_path)
    cluster.wait_for(missing, "EXIT", timeout=20)
    assert "there is no virtual environment in /no/such" in (tmp_path / "missing.out").read_text()


def _commands(cluster: Cluster) -> list[str]:
    found = []
    for pid in cluster.processes():
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0])
        except OSError:
            continue
    return found


def test_a_script_in_a_container_and_a_login_shell(cluster: Cluster, tmp_path: Path) -> None:
    """The job file is seen inside; -L reads the login files before the command."""
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    image = make_image(tmp_path / "image")
    script = "#!/bin/sh\ncat /etc/lava-release\n"
    done = cluster.run(f'bsub -a "container({image})" -o box.out', stdin=script, cwd=tmp_path)
    cluster.wait_for(int(done.stdout[5:].split(">")[0]), "DONE")
    assert said(tmp_path / "box.out") == "inside\n"
    (tmp_path / ".profile").write_text("export FROM_LOGIN=yes\n")
    done = cluster.run(f"HOME={tmp_path} bsub -L /bin/sh -o login.out 'echo got $FROM_LOGIN'", cwd=tmp_path)
    job = int(done.stdout[5:].split(">")[0])
    cluster.wait_for(job, "DONE")
    assert said(tmp_path / "login.out") == "got yes\n"
