"""Jobs on hosts whose network is cut and whose daemons are stopped and woken: each run writes when it lives, so that two at once,
or one too many, are seen. Used by a short test and, with more faults, by ``make soak``.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from cli.local.daemons import children
from tests.support.live.cluster import Cluster
from tests.support.live.netns import NetnsCluster
from tests.support.wait import wait_until

SCRIPT = """#!/bin/sh
# $1: ledger  $2: tenths of a second; a line each: job, this run, seconds of the machine's clock, what
run="$LSB_JOBID $$.$(date +%N)"
say() { read up rest < /proc/uptime; echo "$run $up $1" >> "$ledger"; }
ledger=$1
say begin
n=0
while [ $n -lt $2 ]; do sleep 0.1; n=$((n+1)); say lives; done
say end
"""
LEASE, MARGIN = 8.0, 11.0
"""Of the clusters of ``lava up``."""


class Parted:
    """One cluster and its faults, by a seed."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int) -> None:
        self.cluster, self.folder, self.seed = cluster, folder, seed
        self.random = random.Random(seed)
        self.again: list[int] = []
        self.once: list[int] = []
        self.faults: list[str] = []
        self._pause = threading.Event()
        script = folder / "job.sh"
        script.write_text(SCRIPT)
        script.chmod(0o755)

    def submit(self, count: int) -> None:
        """Half of them may run again, half may not."""
        for number in range(count):
            tenths = self.random.choice((20, 80, 200))
            again = "-r " if number % 2 else ""
            job = self.cluster.submit(f"{again}-o /dev/null {self.folder}/job.sh {self.folder}/ledger {tenths}", timeout=180)
            (self.again if again else self.once).append(job)

    def befall(self) -> None:
        """One fault, for less or more than the lease and the margin, and what undoes it."""
        host = self.random.choice(self.cluster.hosts)
        kinds = ["stop agent", "stop agent", "stop shepherds", "stop lavad"]
        if isinstance(self.cluster, NetnsCluster):
            kinds += ["cut", "cut"]
        what = self.random.choice(kinds)
        masters = [name for name in ("lavad", "lavad-2") if self.cluster.pid(name)]
        seconds = self.random.choice((1.0, 6.0, 6.0, LEASE + MARGIN + 6.0))
        self.faults.append(f"{what} {host} {seconds:.0f} s")
        if what == "cut":
            assert isinstance(self.cluster, NetnsCluster)
            self.cluster.link(host, "down")
            self._pause.wait(seconds)
            self.cluster.link(host, "up")
        elif what == "stop agent":
            self._stopped([self.cluster.pid(f"agent-{host}")], seconds)
        elif what == "stop lavad":
            self._stopped([self.cluster.pid(self.random.choice(masters))], seconds)
        else:
            starter = self.cluster.pid(f"starter-{host}")
            shepherds = [pid for pid in children([starter]) - {starter} if _name(pid) == "lava-shepherd"]
            self._stopped(shepherds, seconds)

    def _stopped(self, pids: list[int], seconds: float) -> None:
        assert all(pids), f"a daemon has ended that nobody has killed: {self._story()}"  # 0 would stop this process
        for pid in pids:
            _signal(pid, signal.SIGSTOP)
        self._pause.wait(seconds)
        for pid in pids:
            _signal(pid, signal.SIGCONT)

    def check(self) -> int:
        """Wait for the end of all, and compare; the number of runs."""
        wait_until(self._all_ended, 240, lambda: f"all jobs to end: {self._story()}")
        wrong: list[str] = []
        runs = self._runs()
        for job in self.once + self.again:
            lives = sorted(runs[job].values())
            twice = [(one, other) for one, other in pairwise(lives) if other[0] <= one[1]]
            wrong += [f"job {job} runs twice: {one} and {other}" for one, other in twice]
            if job in self.once and len(lives) > 1:
                wrong.append(f"job {job} may run once and ran {len(lives)} times")
            if not lives:
                wrong.append(f"job {job} never ran")
        assert not wrong, f"{wrong}\n{self._story()}"
        return sum(len(lives) for lives in runs.values())

    def _runs(self) -> dict[int, dict[str, tuple[float, float]]]:
        """Job to its runs, each with the seconds between which it is seen to live."""
        found: dict[int, dict[str, tuple[float, float]]] = defaultdict(dict)
        for line in (self.folder / "ledger").read_text().splitlines():
            job, run, up, _ = line.split()
            first, _ = found[int(job)].get(run, (float(up), 0.0))
            found[int(job)][run] = (first, float(up))
        return found

    def _all_ended(self) -> bool:
        shown = self.cluster.run("bjobs -a -noheader -o 'jobid stat'", ok=False).stdout.splitlines()
        states = {int(words[0]): words[1] for line in shown if len(words := line.split()) == 2}
        return all(states.get(job) in ("DONE", "EXIT") for job in self.once + self.again)

    def _story(self) -> str:
        return f"seed {self.seed}, faults {self.faults}\n{self.cluster.logs()}"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _signal(pid: int, sign: int) -> None:
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return
