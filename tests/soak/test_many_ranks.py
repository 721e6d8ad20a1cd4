"""Many ranks: 1,024 of one job on 16 agents are wired, and what 64 busy ranks cost their agent.

Figures go to standard output (`pytest -s`); nothing asserts a speed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.processes import stat
from tests.support.wait import wait_until

TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("program")
    folder.chmod(0o755)
    source = Path(__file__).with_name("pmi_rank.c")
    subprocess.run(["gcc", "-O1", "-o", str(folder / "rank"), str(source)], check=True)
    return folder / "rank"


pytestmark = pytest.mark.cluster(hosts=16, slots=64)


def test_1024_ranks_on_16_agents(cluster: Cluster, tmp_path: Path, program: Path) -> None:
    """Every rank gets what another put, through one proxy a host."""
    for number in range(3):
        words = f'-a mpi -n 1024 -R "span[ptile=64]" -oo out.{number} {program}'
        began = time.monotonic()
        job = cluster.submit(words, cwd=tmp_path)
        cluster.wait_for(job, "DONE", timeout=120)
        took = time.monotonic() - began
        text = (tmp_path / f"out.{number}").read_text()
        found = [(float(a), float(b)) for a, b in re.findall(r"rank \d+ of 1024: ([\d.]+) ([\d.]+)", text)]
        assert len(found) == 1024
        started = max(start for start, _ in found) - min(start for start, _ in found)
        wired = max(end for _, end in found) - max(start for start, _ in found)
        say(f"1,024 ranks: {took:.2f} s submit to DONE, {started:.2f} s to start all, {wired:.2f} s more until all are wired")


def test_what_64_busy_ranks_cost_the_agent(tmp_path: Path) -> None:
    """CPU of the agent beside 64 ranks that compute, at the default sampling period of 10 s."""
    (tmp_path / "conf").mkdir()
    defaults = "LAVA_SAMPLE_PERIOD=10 LAVA_HEARTBEAT=10 LAVA_HOST_TIMEOUT=60 LAVA_LEASE=600 LAVA_LEASE_MARGIN=30"
    (tmp_path / "conf" / "lsf.conf").write_text(defaults.replace(" ", "\n") + "\n")
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "c", slots=64, options=("--conf", str(tmp_path / "conf"))) as cluster:
        job = cluster.submit("-a pytorch -n 64 -o /dev/null sh -c 'while :; do :; done'", cwd=tmp_path)
        cluster.wait_for(job, "RUN")
        wait_until(lambda: "TASK USAGE" in cluster.run(f"bjobs -l {job}").stdout, 90, "the first sample")
        before = {name: _cpu(cluster.pid(name)) for name in ("agent-host1", "starter-host1", "lavad")}
        began = time.monotonic()
        wait_until(lambda: time.monotonic() > began + 61, 90, "a minute")
        seconds = time.monotonic() - began
        for name, cpu in before.items():
            share = 100 * (_cpu(cluster.pid(name)) - cpu) / seconds
            say(f"64 busy ranks: {name} uses {share:.2f} % of a core")
        cluster.run(f"bkill {job}")
        cluster.wait_end(job)


def say(text: str) -> None:
    """A figure, for who runs the soak with -s."""
    sys.stdout.write(text + "\n")


def _cpu(pid: int) -> float:
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS
