"""Job files that ``lava run`` submits to a live cluster, and what their tasks wrote."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

EXAMPLES = Path(__file__).parents[3] / "examples" / "roles"


def lava_run(cluster: Cluster, folder: Path, words: str) -> int:
    """The number of the one job that it submits."""
    done = cluster.run(f"lava run {words}", cwd=folder)
    found = re.match(r"Job <(\d+)> is submitted", done.stdout)
    assert found, done.stdout + done.stderr
    return int(found[1])


def run(cluster: Cluster, folder: Path, text: str | Path, state: str = "DONE") -> list[str]:
    """Submit a job file and wait; the lines that its tasks wrote."""
    path = text if isinstance(text, Path) else folder / "job.yaml"
    if isinstance(text, str):
        path.write_text(text)
    job = lava_run(cluster, folder, f"-o out.%J {path}")
    out = folder / f"out.{job}"
    assert cluster.wait_end(job, timeout=60) == [state], out.read_text()
    wait_until(lambda: "Resource usage summary" in out.read_text(), 30, "the report")
    return out.read_text().partition("\n-----")[0].splitlines()


def nothing_left(cluster: Cluster, mark: str) -> None:
    """No process of the cluster's jobs whose command line has this word."""

    def alive() -> list[str]:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().decode(errors="replace").split("\0")
                env = Path(f"/proc/{name}/environ").read_bytes() if mark in words else b""
            except OSError:
                continue
            if str(cluster.folder.path).encode() in env:
                found.append(name)
        return found

    wait_until(lambda: not alive(), 30, lambda: f"no process of {mark}: {alive()}")
