"""The examples that need other packages, each in an environment of its own, which is fetched once."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.wheels import environment

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.cluster(hosts=2)


def ran(
    cluster: Cluster, folder: Path, example: str, *words: str, packages: tuple[str, ...], name: str = ""
) -> subprocess.CompletedProcess[str]:
    """A command of an example's folder, copied, with the packages first in PATH. ``name``: of their environment."""
    found, why = environment(name or example, *packages, within=600)
    if why:
        pytest.skip(why)
    shutil.copytree(EXAMPLES / example, folder / example)
    environ = {**cluster.environ, "PATH": f"{found}:{cluster.environ['PATH']}"}
    return subprocess.run(words, cwd=folder / example, env=environ, capture_output=True, text=True, timeout=300, check=False)


def test_snakemake(cluster: Cluster, tmp_path: Path) -> None:
    words = ("snakemake", "--profile", "profile", "--seconds-between-status-checks", "1")
    done = ran(cluster, tmp_path, "snakemake", *words, packages=("snakemake==9.27.1", "snakemake-executor-plugin-lsf==0.3.3"))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert (tmp_path / "snakemake/total.txt").read_text() == "15\n"


def test_dask(cluster: Cluster, tmp_path: Path) -> None:
    done = ran(cluster, tmp_path, "dask", "python", "squares.py", packages=("dask-jobqueue==0.9.0",))
    assert (done.returncode, done.stdout) == (0, "328350\n"), done.stderr[-4000:]


@pytest.mark.cluster(hosts=1, slots=8)
@pytest.mark.parametrize("file", ["ray.yaml", "rayjob.yaml"])
def test_ray(cluster: Cluster, tmp_path: Path, file: str) -> None:
    """Two workers that start on one host at the same moment both join."""
    words = ("lava", "run", "-K", "-o", "out", file)
    done = ran(cluster, tmp_path, "ray", *words, packages=("ray[default]==2.60.0",), name="ray-default")
    output = (tmp_path / "ray/out").read_text()
    assert (done.returncode, "5 CPUs: 328350" in output) == (0, True), output[-4000:]


@pytest.mark.cluster(hosts=2, slots=3)
def test_spark(cluster: Cluster, tmp_path: Path) -> None:
    """Two executors on two hosts sum up what they compute."""
    if shutil.which("java") is None:
        pytest.skip("no java is in PATH")
    words = ("lava", "run", "-K", "-o", "out", "sparkapplication.yaml")
    done = ran(cluster, tmp_path, "spark", *words, packages=("pyspark==4.3.0",))
    output = (tmp_path / "spark/out").read_text()
    assert (done.returncode, "4 cores: 328350" in output) == (0, True), output[-4000:]


def test_xgboost(cluster: Cluster, tmp_path: Path) -> None:
    """Four tasks end with one model."""
    words = ("lava", "run", "-K", "-o", "out", "xgboostjob.yaml")
    done = ran(cluster, tmp_path, "xgboost", *words, packages=("xgboost-cpu==3.2.0",))
    lines = [line.split() for line in (tmp_path / "xgboost/out").read_text().splitlines() if line.startswith("rank ")]
    assert (done.returncode, sorted(line[1] for line in lines), len({line[-1] for line in lines})) == (0, ["0", "1", "2", "3"], 1)


def test_nextflow(cluster: Cluster, tmp_path: Path) -> None:
    if shutil.which("nextflow") is None:
        pytest.skip("no nextflow is in PATH")
    done = ran(cluster, tmp_path, "nextflow", "nextflow", "run", "main.nf", packages=())
    assert "sum 30" in done.stdout, done.stdout + done.stderr


def test_jupyter(cluster: Cluster, tmp_path: Path) -> None:
    """The address that lava jupyter prints is answered, with its token and not without."""
    found, why = environment("jupyterlab", "jupyterlab==4.6.2", within=600)
    if why:
        pytest.skip(why)
    environ = {**cluster.environ, "PATH": f"{found}:{cluster.environ['PATH']}"}
    command = ["lava", "jupyter", "--", "--allow-root", f"--notebook-dir={tmp_path}"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    submitted, told, *_ = done.stdout.splitlines()
    address = told.rpartition(": ")[2]
    with urllib.request.urlopen(address.replace("/lab?", "/api/contents?"), timeout=30) as answer:
        assert answer.status == 200
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(address.partition("/lab?")[0] + "/api/contents", timeout=30)
    cluster.run(f"bkill {submitted.split('<')[1].split('>')[0]}")
