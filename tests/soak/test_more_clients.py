"""More real client tools of LSF drive a cluster, unmodified, each from a Python environment of its own.

Packages are fetched into a cache (once); what cannot be fetched is skipped by name.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.soak import client_programs as programs
from tests.support.live.cluster import Cluster
from tests.support.live.wheels import environment

CLIENTS = {
    "cylc": (programs.CYLC, "cylc-flow==8.5.4"),
    "torchx": (programs.TORCHX, "torchx==0.7.0"),
    "pysqa": (programs.PYSQA, "pysqa==1.1.1"),
    "pulsar": (programs.PULSAR, "pulsar-app==0.16.0"),
    "hydra": (programs.HYDRA, "hydra-lsf-launcher==0.1.2"),
    "streamflow": (programs.STREAMFLOW, "streamflow-lsf==0.0.1", "streamflow==0.2.0.dev11"),
    "snakemake-generic": (programs.SNAKEMAKE_GENERIC, "snakemake", "snakemake-executor-plugin-cluster-generic==1.0.9"),
    "lsf-runner": (programs.LSF_RUNNER, "lsf-runner==0.0.5"),
    "looper": (programs.LOOPER, "looper==2.1.1"),
    "prometheus": (programs.PROMETHEUS, "lsf-prometheus-exporter==1.0.2"),
    "miniwdl": (programs.MINIWDL, "miniwdl-lsf==0.2.0"),
    "psij": (programs.PSIJ, "psij-python==0.9.11"),
    "nipype": (programs.NIPYPE, "nipype==1.11.0"),
    "maestro": (programs.MAESTRO, "maestrowf==1.2.1"),
}


pytestmark = pytest.mark.cluster(hosts=2)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_drives_the_cluster(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Submit, follow, see an end and kill, as far as the tool does each."""
    program, *packages = CLIENTS[name]
    folder, why = environment(name, *packages, within=600)
    if why:
        pytest.skip(why)
    (tmp_path / "drive.py").write_text(program)
    environ = {**cluster.environ, "PATH": f"{folder}:{cluster.environ['PATH']}", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [str(folder / "python"), "drive.py"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
