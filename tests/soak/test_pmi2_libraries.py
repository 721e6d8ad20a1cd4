"""Gangs whose ranks speak PMI-2 by Slurm's libpmi2 and by Intel MPI, on one host and over the TLS link of two."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons.gangs import python, run, run_over
from tests.support.daemons.starters import SHELL_PATH
from tests.support.live.cluster import VENV
from tests.support.live.ranks import compiled
from tests.support.live.wheels import debian_library, environment

SLURM = """
import ctypes, os
pmi = ctypes.CDLL(LIBRARY)
spawned, size, rank, number, length, found = (ctypes.c_int() for _ in range(6))
job, value = ctypes.create_string_buffer(256), ctypes.create_string_buffer(1024)
assert pmi.PMI2_Init(*map(ctypes.byref, (spawned, size, rank, number))) == 0
assert pmi.PMI2_Job_GetId(job, 256) == 0
assert pmi.PMI2_KVS_Put(b"r%d" % rank.value, b"of %d" % rank.value) == 0
assert pmi.PMI2_KVS_Fence() == 0
others = []
for i in range(size.value):
    assert pmi.PMI2_KVS_Get(job, -1, b"r%d" % i, value, 1024, ctypes.byref(length)) == 0
    others.append(value.value.decode())
assert pmi.PMI2_Info_GetJobAttr(b"universeSize", value, 1024, ctypes.byref(found)) == 0
others.append(value.value.decode())
# the first of two ranks of a host waits for what the second has put
if rank.value % 2:
    assert pmi.PMI2_Info_PutNodeAttr(b"near", b"by %d" % rank.value) == 0
assert pmi.PMI2_Info_GetNodeAttr(b"near", value, 1024, ctypes.byref(found), 1) == 0
assert pmi.PMI2_Nameserv_lookup(b"service", None, value, 1024) != 0
os.write(1, f"rank {rank.value}: {' '.join(others)}\\n".encode())
assert pmi.PMI2_Finalize() == 0
"""


@pytest.fixture(scope="module")
def slurm() -> Path:
    found, why = debian_library("libpmi2-0", "libpmi2.so.0*")
    if why:
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def intel(slurm: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A program of Intel MPI, which is made from MPICH and finds its PMI-2 in a library of the site's."""
    folder, why = environment("impi-rt", "impi-rt", within=600)
    if why or shutil.which("gcc") is None:
        pytest.skip(why or "no C compiler")
    library = {"LD_LIBRARY_PATH": f"{folder.parent}/lib", "I_MPI_ROOT": str(folder.parent), "FI_PROVIDER": "tcp"}
    by = {"I_MPI_PMI": "pmi2", "I_MPI_PMI_LIBRARY": str(slurm), "I_MPI_FABRICS": "ofi"}
    # The wheel has no compiler; MPICH's makes programs of the same binary interface.
    program = compiled(tmp_path_factory.mktemp("program"), f"{VENV}/mpicc", "rank")
    return {"argv": [str(program)], "env": {"PATH": SHELL_PATH, "LAVA_HOST": "here", **library, **by}}


@pytest.mark.parametrize("hosts", [1, 2])
def test_the_library_of_slurm(hosts: int, slurm: Path, request: pytest.FixtureRequest) -> None:
    script = python(SLURM.replace("LIBRARY", repr(str(slurm))))
    if hosts == 1:
        end, said = run(request.getfixturevalue("rig"), script)
    else:
        end, said = run_over(request.getfixturevalue("two"), script)
    assert end["status"] == 0, said
    assert said == [f"rank {i}: of 0 of 1 of 2 of 3 4" for i in range(4)]


@pytest.mark.parametrize("hosts", [1, 2])
def test_real_mpi(hosts: int, intel: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """Intel MPI, to which nothing but libpmi2 is given."""
    if hosts == 1:
        end, said = run(request.getfixturevalue("rig"), intel["argv"], env=intel["env"])
    else:
        end, said = run_over(request.getfixturevalue("two"), intel["argv"], env=intel["env"])
    assert end["status"] == 0, said
    assert said == [f"rank {i} of 4 on here: 10" for i in range(4)]
