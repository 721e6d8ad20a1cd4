"""Real client tools of LSF drive a cluster, unmodified: each by its own script in ``shared/clients`` beside the checkout.

Each script makes a virtual environment of its own (once, in the user's cache) and prints one line, OK or FAIL.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

CLIENTS = Path(__file__).parents[3] / "shared" / "clients"
RUN_ALL = CLIENTS / "run_all.sh"
NAMES = ("aiida", "batchspawner", "dask", "dask_file", "dpdispatcher", "myqueue", "parsl", "snakemake")
EXPORTED = ("PATH", "LSF_ENVDIR", "LSF_CONFDIR", "LSF_BINDIR", "LSF_SERVERDIR", "LSF_LIBDIR", "LAVA_DIR")

pytestmark = pytest.mark.skipif(not RUN_ALL.exists(), reason="no shared/clients beside this checkout")


@pytest.mark.parametrize("name", NAMES)
def test_a_client_runs_unmodified(cluster: Cluster, tmp_path: Path, name: str) -> None:
    """Submit, follow and kill as the tool itself does it."""
    exports = tmp_path / "env.sh"
    exports.write_text(
        "".join(
            f"export {variable}={shlex.quote(cluster.environ[variable])}\n"
            for variable in EXPORTED
            if variable in cluster.environ
        )
    )
    environ = {
        **os.environ,
        "LAVA_ENV_SH": str(exports),
        "LAVA_ACCEPT_WORK": str(tmp_path / "work"),
        "LAVA_ACCEPT_LOGS": str(tmp_path),
        "JOBS": "1",
    }
    done = subprocess.run(["bash", str(RUN_ALL), name], capture_output=True, text=True, timeout=1000, env=environ, check=False)
    log = tmp_path / f"{name}.log"
    assert done.stdout.startswith(f"OK {name}"), done.stdout + (log.read_text() if log.exists() else done.stderr)
