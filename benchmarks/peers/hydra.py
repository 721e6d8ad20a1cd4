"""mpiexec.hydra of MPICH, from the wheel in lava's own environment: it starts ranks, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from benchmarks.line import best_of
from benchmarks.peers.rows import RANKS, Measure

PAUSE = 0.05
HOW = "pip install mpich, or apt-get install mpich"


def find() -> str | None:
    """Its path; the wheel's first."""
    beside = Path(sys.executable).parent
    return shutil.which("mpiexec.hydra", path=f"{beside}{os.pathsep}{os.environ['PATH']}")


class Hydra:
    """Use it in a ``with``; it has no daemons."""

    name = "hydra"

    def __init__(self, path: str) -> None:
        self._path = path

    @property
    def version(self) -> str:
        """As it says itself."""
        said = subprocess.run([self._path, "--version"], capture_output=True, text=True, check=False).stdout
        found = [line.partition(":")[2].strip() for line in said.splitlines() if line.strip().startswith("Version:")]
        return f"mpiexec.hydra {found[0] if found else ''}".strip()

    def __enter__(self) -> Hydra:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def measures(self) -> dict[str, Measure]:
        """One row."""
        return {"ranks_64": Measure(lambda: 1000 * (best_of(self._ranks, 5) - PAUSE), "mpiexec.hydra -n 64, no job")}

    def _ranks(self) -> None:
        words = (self._path, "-launcher", "fork", "-n", str(RANKS), "/bin/true")
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd="/", env=environ())
        time.sleep(PAUSE)


def environ() -> dict[str, str]:
    """Without what an outer launcher or a site's LSF would tell hydra."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LSB_", "LSF_", "PMI", "HYDRA"))}
