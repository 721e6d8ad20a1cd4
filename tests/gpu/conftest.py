"""What the tests of this folder share: a driver with a GPU, without which they are skipped, and a cluster."""

from __future__ import annotations

import pynvml
import pytest

from agent.devtools import simgpu
from tests.support.live.fixtures import cluster

__all__ = ["cluster", "driver"]


@pytest.fixture(scope="session", autouse=True)
def driver() -> None:
    """Skips without one."""
    simgpu.uninstall()
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        pytest.skip(f"no NVIDIA driver on this host: {error}")
    if not count:
        pytest.skip("the NVIDIA driver of this host has no GPU")
