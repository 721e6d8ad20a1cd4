"""A GPU driver that hangs while a host starts, and then answers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

FAULTS = Path(tempfile.gettempdir()) / f"lava-gpu-faults-{os.getpid()}.json"
pytestmark = pytest.mark.cluster(
    options=("--gpus", "2"), environ={"LAVA_SIM_GPU_FAULTS": str(FAULTS), "LAVA_SIM_GPU_MODELS": "H100,A100"}
)
WAIT = 60.0


@pytest.fixture(scope="module", autouse=True)
def faults() -> Iterator[None]:
    FAULTS.write_text('{"driver": "hangs"}')
    yield
    FAULTS.unlink()


def test_a_host_works_without_its_gpus_and_gets_them_without_a_restart(cluster: Cluster) -> None:
    assert "GPU DRIVER: the NVIDIA driver hangs\n" in wait_until(lambda: _long(cluster, "hangs"), WAIT, "the driver to be named")
    assert cluster.run("lshosts -gpu -noheader").stdout.split() == ["host1", *"------"]
    assert "<<Starting on host1>>" in cluster.run("bsub -I true").stderr
    FAULTS.write_text("{}")
    wait_until(lambda: "NVIDIAA100-SXM4-80GB" in cluster.run("lshosts -gpu").stdout, WAIT, "the GPUs to be listed")
    shown = cluster.run("bsub -I -gpu num=2 'echo $CUDA_VISIBLE_DEVICES; sleep 0'").stdout
    assert shown.count("GPU-51a00000-") == 2
    text = wait_until(lambda: _long(cluster, "35C"), WAIT, "their state")
    assert "GPU DRIVER" not in text
    assert text.count("NVIDIAH10080GBHBM3") == 1


def _long(cluster: Cluster, word: str) -> str:
    text = cluster.run("bhosts -gpu -l").stdout
    return text if word in text else ""
