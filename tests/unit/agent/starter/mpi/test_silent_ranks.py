"""Which processes have called MPI_Init of Open MPI by themselves: told by open files, maps and environment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.starter.mpi.silent_ranks import FIRST_LOOK, LONGEST_PAUSE, SilentRanks, is_alone_in_open_mpi

PROGRAM = """
import mmap, sys
held = open(sys.argv[1], "w")
with open(sys.argv[2], "r+b") as f:
    mapped = mmap.mmap(f.fileno(), 0)
print("there", flush=True)
sys.stdin.read()
"""
RANK = {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "9"}
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts a process with a file open and a library mapped; its pid."""
    started: list[subprocess.Popen[str]] = []
    probe = Path(f"/dev/shm/open_mpi.test{os.getpid()}")

    def start(env: dict[str, str], held: Path = probe, library: str = "libmpi.so.40.30.4", below: bool = False) -> int:
        (tmp_path / library).write_bytes(b"x" * 4096)
        words = [sys.executable, "-c", PROGRAM, str(held), str(tmp_path / library)]
        if below:
            words = ["/bin/sh", "-c", '"$@"; exit 0', "sh", *words]
        one = subprocess.Popen(words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(one)
        assert one.stdout is not None
        assert one.stdout.readline() == "there\n"
        return one.pid

    yield start
    for one in started:
        one.communicate(timeout=20)
    probe.unlink(missing_ok=True)


def test_a_rank_in_mpi_init_of_open_mpi(run: Run) -> None:
    assert is_alone_in_open_mpi(run(RANK))


@pytest.mark.parametrize("more", [{"PMIX_NAMESPACE": "prterun-1@1"}, {"OMPI_COMM_WORLD_SIZE": "2"}])
def test_a_process_that_mpirun_started_in_a_rank_is_not_alone(run: Run, more: dict[str, str]) -> None:
    assert not is_alone_in_open_mpi(run(RANK | more))


def test_a_process_that_is_no_rank_may_be_alone(run: Run) -> None:
    """``env -u PMI_RANK`` is how a script says that it means one."""
    assert not is_alone_in_open_mpi(run({}))


def test_the_library_alone_is_not_enough(run: Run, tmp_path: Path) -> None:
    """A program may be linked with it and never call MPI_Init."""
    assert not is_alone_in_open_mpi(run(RANK, held=tmp_path / "other"))


def test_mpirun_itself_maps_no_mpi(run: Run) -> None:
    assert not is_alone_in_open_mpi(run(RANK, library="libopen-rte.so.40"))


def test_a_process_that_is_gone(run: Run) -> None:
    assert not is_alone_in_open_mpi(2**22 + 1)


def _find(silent: SilentRanks) -> int | None:
    """Look when it is time."""
    at = silent.wake_at()
    assert at is not None
    while time.monotonic() < at:
        os.sched_yield()
    return silent.find()


def test_a_process_below_a_rank_is_found_and_named_by_the_rank(run: Run) -> None:
    silent = SilentRanks(lambda _: False)
    silent.started(4, run(RANK, library="libc.so"))
    silent.started(5, run(RANK, below=True))
    assert _find(silent) == 5


def test_ranks_that_have_begun_or_ended_are_not_looked_at(run: Run) -> None:
    silent = SilentRanks(lambda rank: rank == 0)
    pid = run(RANK)
    silent.started(0, pid)
    silent.started(1, pid)
    silent.ended(1)
    assert _find(silent) is None
    assert silent.wake_at() is None  # nobody is left to look at


def test_looks_are_rarer_the_longer_ranks_run() -> None:
    silent = SilentRanks(lambda _: False)
    assert silent.wake_at() is None
    began = time.monotonic()
    silent.started(0, os.getpid())
    first = silent.wake_at()
    assert first is not None
    assert began + FIRST_LOOK <= first <= time.monotonic() + FIRST_LOOK
    assert silent.find() is None  # too early: nothing is read, and the time stands
    assert silent.wake_at() == first
    assert _find(silent) is None
    second = silent.wake_at()
    assert second is not None
    assert first + FIRST_LOOK <= second <= time.monotonic() + LONGEST_PAUSE
