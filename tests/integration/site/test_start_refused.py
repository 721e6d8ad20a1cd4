"""What keeps a daemon from starting, or ``lava`` from doing what it was asked, is one line that names it; what runs goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.local.daemons import begun, find_pid
from cli.local.folder import ROOT, Folder, Shape
from tests.support.live.cluster import Cluster
from tests.support.live.tls import TlsCluster
from tests.support.wait import SLOW


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    folder = tmp_path_factory.mktemp("site")
    folder.chmod(0o755)
    with TlsCluster(folder / "cluster") as cluster:
        yield cluster


def refused(module: str, *words: str, log: Path | None = None) -> str:
    """What a daemon says last that ends at once, in its ``log`` if it has one."""
    whole = [sys.executable, "-m", module, *words, *([] if log is None else ["--log", str(log)])]
    done = subprocess.run(whole, cwd=ROOT, capture_output=True, text=True, timeout=60 * SLOW, check=False)
    said = done.stderr if log is None else log.read_text()
    assert (done.returncode, done.stdout) == (1, ""), said
    assert "Traceback" not in said
    return said.splitlines()[-1]


def test_an_address_that_another_process_has(site: TlsCluster, tmp_path: Path) -> None:
    places = ["--conf", str(site.folder.conf), "--run", str(tmp_path / "run"), "--database", f"sqlite:///{tmp_path}/store"]
    said = refused("lavad", *places, "--host", "host1", "--listen", site.address, log=tmp_path / "log")
    assert said.endswith(f"lavad ends: cannot listen on {site.address}: Failed to bind to address {site.address}")
    site.wait_for(site.submit("-o /dev/null true"), "DONE")


def test_a_folder_of_the_configuration_that_is_not_there(tmp_path: Path) -> None:
    for module, name in (("lavad", "lavad"), ("agent.main", "lava-agent")):
        places = ["--conf", "/no/such", "--run", str(tmp_path / "run"), "--host", "h"]
        said = refused(module, *places, *(["--spool", str(tmp_path / "spool")] if name == "lava-agent" else []))
        assert said == f"{name}: /no/such: there is no such folder (--conf, LSF_ENVDIR: the one with lsf.conf)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize(("owner", "mode"), [(65534, 0o755), (0, 0o1777)])
def test_a_folder_of_kept_output_in_which_others_could_put_folders_of_users(tmp_path: Path, owner: int, mode: int) -> None:
    """Root gives a folder there to each user, and a job's script lies in it."""
    (tmp_path / "output").mkdir()
    (tmp_path / "output").chmod(mode)
    os.chown(tmp_path / "output", owner, owner)
    (tmp_path / "lsf.conf").write_text(f"LAVA_OUTPUTDIR={tmp_path}/output\n")
    places = ["--conf", str(tmp_path), "--run", str(tmp_path / "run"), "--spool", str(tmp_path / "spool"), "--host", "h"]
    said = refused("agent.main", *places, "--await-starter")
    assert said.startswith(f"lava-agent: {tmp_path}/output {'belongs to user 65534' if owner else 'has mode 1777'}")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_ends_no_cluster(site: TlsCluster) -> None:
    path = site.folder.path
    done = site.run(f"lava down --dir {path}", user=65534, cwd=Path("/"), ok=False)
    expected = f"lava down: {path}: its daemons are of another user: Operation not permitted\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    assert site.status() == ["ok"]


def test_status_is_of_the_site_whatever_cluster_of_the_users_own_there_is(site: TlsCluster, tmp_path: Path) -> None:
    other = Folder(tmp_path / "lava")
    other.make()
    other.keep_shape(Shape(["host1"], 1, 1, "sqlite"))
    lava = f"env -u LAVA_DIR XDG_STATE_HOME={tmp_path}"
    assert site.run(f"{lava} lava status").stderr == "nothing is wrong with the cluster\n"
    assert "down" in site.run(f"{lava} lava status --dir {other.path}").stdout
    assert "down" in site.run(f"{lava} LSF_ENVDIR={other.conf} lava status").stdout


def test_a_folder_is_the_same_by_whatever_link_and_another_clusters_starter_is_not_its_own(tmp_path: Path) -> None:
    with Cluster(tmp_path / "real") as cluster:
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert cluster.lava("status", "--dir", str(tmp_path / "link")).stderr == "nothing is wrong with the cluster\n"
        other = Folder(tmp_path / "rea")
        other.make()
        other.keep_shape(Shape(["host1"], 1, 1, "sqlite"))
        for name in ("lavad", "agent-host1", "starter-host1"):
            other.pid_file(name).write_text(cluster.folder.pid_file(name).read_text())
        assert [find_pid(other, name) for name in ("lavad", "agent-host1", "starter-host1")] == [0, 0, 0]
        assert cluster.lava("down", "--dir", str(other.path)).returncode == 0
        pids = [cluster.pid(name) for name in ("lavad", "agent-host1", "starter-host1")]
        assert all(pids)
        assert cluster.lava("down", "--dir", str(tmp_path / "link")).returncode == 0
        assert begun(pids) == {}
