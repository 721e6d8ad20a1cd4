"""CPython's own tests of executors hold for lava's, with each interpreter at hand that has them; joblib and dask take it."""

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


@pytest.fixture
def inside(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is in the cluster, as a user's is after ``lava env``."""
    for name, value in {**cluster.environ, "LAVA_CLIENT_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("inside")
def test_functions_without_a_name_and_joblib_and_dask() -> None:
    pytest.importorskip("cloudpickle")
    joblib = pytest.importorskip("joblib")
    lava_joblib = pytest.importorskip("lava_client.joblib")
    lava_joblib.register()
    with lava_client.Executor(max_workers=4) as executor:
        shift = 7
        assert list(executor.map(lambda number: number + shift, range(5))) == [7, 8, 9, 10, 11]
        with joblib.parallel_config(backend="lava", memory="1GB"):
            assert joblib.Parallel(n_jobs=4)(joblib.delayed(pow)(number, 2) for number in range(20)) == [n * n for n in range(20)]
            with pytest.raises(ZeroDivisionError):
                joblib.Parallel()(joblib.delayed(divmod)(1, number) for number in (1, 0))
        dask = pytest.importorskip("dask")
        assert dask.compute(dask.delayed(pow)(2, 5) + 1, scheduler=executor) == (33,)
