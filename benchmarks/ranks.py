"""64 no-op ranks without MPI through ``-a mpi`` on one host, submit to DONE; floor: mpiexec.hydra of the mpich wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cluster import Cluster, submission
from benchmarks.line import ROUNDS, Line, best_of, line

METRICS = ("mpi_launch_64",)
RANKS = 64
EACH = 3
PAUSE = 0.1


def lines(wanted: set[str]) -> Iterator[Line]:
    """Launches, with hydra in between."""
    hydra = (str(Path(sys.executable).parent / "mpiexec.hydra"), "-launcher", "fork", "-n", str(RANKS), "/bin/true")
    with Cluster(slots=RANKS) as cluster:
        wire = cluster.wire()

        def launch() -> None:
            job = wire.ask(**submission(a="mpi", n=str(RANKS)))["job"]
            ended = wire.ask(ask="wait", job=job, until="finished")
            if ended.get("state") != "DONE":
                raise SystemExit(f"mpi_launch_64: {ended}")
            time.sleep(PAUSE)  # the host is as idle for hydra as for lava

        def spawned() -> None:
            subprocess.run(hydra, check=True, stdout=subprocess.DEVNULL, cwd="/", env=_environ())
            time.sleep(PAUSE)

        launch()
        values, floors = [], []
        for _ in range(ROUNDS):
            floors.append(1000 * (best_of(spawned, EACH) - PAUSE))
            values.append(1000 * (best_of(launch, EACH) - PAUSE))
        note = "64 ranks of /bin/true by -a mpi, submit to DONE; floor: mpiexec.hydra -n 64 true"
        yield line("mpi_launch_64", "ms", values, floors, note)


def _environ() -> dict[str, str]:
    """Without what an outer launcher or a site's LSF would tell hydra."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("LSB_", "LSF_", "PMI", "HYDRA"))}
