"""CPython's own tests of executors hold for lava's, with each interpreter at hand that has brought them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import lava_client
from tests.support.live.cluster import Cluster
from tests.support.pythons import VERSIONS, python
from tests.support.wait import SLOW

pytestmark = pytest.mark.cluster(hosts=2, slots=8)
LEAST = 20
"""Tests that each of them has."""


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_an_executor_as_cpython_tests_them(cluster: Cluster, tmp_path: Path, version: str) -> None:
    interpreter = python(version)
    if subprocess.run([interpreter, "-c", "import test.test_concurrent_futures"], capture_output=True, check=False).returncode:
        pytest.skip(f"python{version} has come without its tests")
    environ = {**cluster.environ, "PYTHONPATH": str(Path(lava_client.__file__).parents[1]), "LAVA_CLIENT_DIR": str(tmp_path)}
    program = Path(__file__).with_name("executor_suite.py")
    done = subprocess.run([interpreter, program], capture_output=True, text=True, timeout=300 * SLOW, env=environ, check=False)
    ran = re.search(r"Ran (\d+) tests", done.stderr)
    assert done.returncode == 0, done.stderr[-4000:]
    assert ran is not None
    assert int(ran[1]) >= LEAST
