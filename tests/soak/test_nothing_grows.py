"""Half a million jobs on one cluster: each of its processes is as large, and as fast, at the end as near the begin.

LAVA_GROWTH_JOBS is their number. Figures are printed (``pytest -s`` shows them as they come).
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

JOBS = int(os.environ.get("LAVA_GROWTH_JOBS", "500000"))
ELEMENTS = 950
SINGLE = 50
WARM = 20_000
"""Jobs after which caches are full, and their memory is what it stays."""
SPARE_MB = 40.0
NAMES = ("lavad", "lava-sched", "lava-query", "lava-eventlog", "lava-agent", "lava-starter")


def memory(cluster: Cluster) -> dict[str, float]:
    """MB of each daemon by name: what it does not share with others."""
    found = {}
    for pid in cluster.processes():
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        if name in NAMES:
            kilobytes = sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
            found[name] = kilobytes / 1024
    return found


def run_thousand(cluster: Cluster, number: int) -> None:
    """An array, and jobs of which each has a project, a job group and a requirement of its own."""
    words = [f"bsub -o /dev/null -J 'a[1-{ELEMENTS}]' true"]
    words += [
        f"bsub -o /dev/null -P p{at} -g /g{at % 97}/{at} -R 'select[mem>{at % 500}] rusage[mem=1]' true"
        for at in range(number * SINGLE, (number + 1) * SINGLE)
    ]
    cluster.run(" && ".join(words), timeout=300)
    wait_until(lambda: "No unfinished" in cluster.run("bjobs -u all", ok=False).stderr, 300, cluster.logs)


def test_memory_and_speed_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    with Cluster(tmp_path / "cluster", hosts=1, slots=16) as cluster:
        conf = cluster.folder.conf / "lsf.conf"
        conf.write_text(conf.read_text() + f"LSB_SHAREDIR={shared}\nLAVA_SAMPLE_PERIOD=1\n")
        params = cluster.folder.conf / "lsb.params"
        params.write_text(params.read_text().replace("End Parameters", "JOB_GROUP_CLEAN = Y\nEnd Parameters"))
        for name in ("lavad", "agent-host1"):
            cluster.kill(name)
        cluster.up()
        seen: list[tuple[int, float, dict[str, float]]] = []
        began = time.monotonic()
        for number in range(max(2, JOBS // (ELEMENTS + SINGLE))):
            done = (number + 1) * (ELEMENTS + SINGLE)
            run_thousand(cluster, number)
            if number % 10 == 0 or done + ELEMENTS + SINGLE > JOBS:
                passed, began = time.monotonic() - began, time.monotonic()
                count = done - (seen[-1][0] if seen else 0)
                seen.append((done, count / passed, memory(cluster)))
                print(f"{done} jobs: {count / passed:.0f} jobs/s;", *(f"{n} {mb:.0f} MB" for n, mb in seen[-1][2].items()))  # noqa: T201
        store = sum(path.stat().st_size for path in cluster.folder.path.rglob("lavad.sqlite*")) / 2**20
        print(f"store {store:.0f} MB, {store * 1024 / JOBS:.2f} KB a job")  # noqa: T201
        assert set(seen[-1][2]) == set(NAMES)
        warm = next((entry for entry in seen if entry[0] >= WARM), seen[-1])
        for name, after in seen[-1][2].items():
            assert after < 1.2 * warm[2][name] + SPARE_MB, (name, warm, seen[-1])
