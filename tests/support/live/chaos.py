"""Mixed jobs under random kills of daemons: every job must end exactly once, with its true exit status and whole output.

Used by the quick integration tests and, with more jobs, by ``make soak``. The seed is in the text of every failure.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

SCRIPT = """#!/bin/sh
# $1: folder  $2: exit code  $3: tenths of a second
echo "$LSB_JOBID.$LSB_JOBINDEX start" >> "$1/ledger"
n=0
while [ $n -lt $3 ]; do sleep 0.1; n=$((n+1)); echo "line $n"; done
echo "$LSB_JOBID.$LSB_JOBINDEX end" >> "$1/ledger"
exit $2
"""


class Chaos:
    """One run: jobs are submitted while daemons are killed."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int, rerunnable: bool = False, queue: str = "normal") -> None:
        self.cluster = cluster
        self.queue = queue
        self.rerunnable = rerunnable
        """Jobs are submitted with -r, as whole hosts die: then one may run more than once, never at the same time."""
        self.folder = folder
        self.seed = seed
        self.random = random.Random(seed)
        self.expected: dict[str, tuple[int, int]] = {}
        """Job id, or id and index with a dot, to exit code and number of lines."""
        self._stop = threading.Event()
        self.kills: list[str] = []
        script = folder / "job.sh"
        script.write_text(SCRIPT)
        script.chmod(0o755)

    def submit(self, count: int) -> None:
        """Submit about ``count`` jobs: single ones and arrays."""
        left = count
        while left > 0:
            code, tenths = self.random.choice((0, 0, 0, 1, 3, 77)), self.random.choice((0, 0, 1, 2, 5, 10))
            how = f"-q {self.queue} " + ("-r " if self.rerunnable else "")
            command = f"{self.folder}/job.sh {self.folder} {code} {tenths}"
            if self.random.random() < 0.2:
                size = self.random.randint(2, 10)
                job = self.cluster.submit(f"{how}-J 'c[1-{size}]' -o {self.folder}/out.%J.%I {command}", timeout=120)
                for index in range(1, size + 1):
                    self.expected[f"{job}.{index}"] = (code, tenths)
                left -= size
            else:
                job = self.cluster.submit(f"{how}-o {self.folder}/out.%J.0 {command}", timeout=120)
                self.expected[f"{job}.0"] = (code, tenths)
                left -= 1

    def kill_daemons(self, victims: list[str], pause: tuple[float, float]) -> threading.Thread:
        """Kill one of ``victims`` now and then, and start it again, until ``calm``."""

        def work() -> None:
            while not self._stop.wait(self.random.uniform(*pause)):
                victim = self.random.choice(victims)
                self.kills.append(victim)
                self._kill(victim)
                if self._stop.wait(self.random.uniform(0.0, 0.5)):
                    break
                self.cluster.up()
            self.cluster.up()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def _kill(self, victim: str) -> None:
        if victim == "scheduler":
            for pid in _named("lava-sched", self.cluster.pid("lavad")):
                os.kill(pid, signal.SIGKILL)
        elif victim.startswith("host"):
            self.cluster.kill_host(victim)
        elif pid := self.cluster.pid(victim):
            os.kill(pid, signal.SIGKILL)

    def calm(self, thread: threading.Thread) -> None:
        """No more kills; everything runs again."""
        self._stop.set()
        thread.join()

    def check(self, timeout: float) -> None:
        """Wait for the end of all jobs, then compare each with what it must be."""
        wait_until(self._all_ended, timeout, lambda: f"all jobs to end: {self._story()}")
        states = self._states()
        ledger = (self.folder / "ledger").read_text().splitlines()
        wrong = []
        for name, (code, tenths) in self.expected.items():
            starts, ends = ledger.count(f"{name} start"), ledger.count(f"{name} end")
            state, exit_code = states[name]
            right = ("DONE", "-") if code == 0 else ("EXIT", str(code))
            lines = self._lines(name)
            if self.rerunnable:
                ran, whole = ends >= 1, lines >= tenths
            else:
                ran, whole = (starts, ends) == (1, 1), lines == tenths
            if not ran or (state, exit_code) != right or not whole:
                wrong.append(f"{name}: ran {starts}/{ends}, {state} {exit_code} for {code}, {lines} of {tenths} lines")
        assert not wrong, f"{self._story()}\n" + "\n".join(wrong)

    def _lines(self, name: str) -> int:
        text = (self.folder / f"out.{name}").read_text()
        return sum(line.startswith("line ") for line in text.splitlines())

    def _states(self) -> dict[str, tuple[str, str]]:
        fields = "jobid jobindex stat exit_code delimiter='|'"
        shown = self.cluster.run(f'bjobs -a -noheader -o "{fields}"', ok=False).stdout
        rows = (line.split("|") for line in shown.splitlines())
        found = {}
        for job, index, state, code in rows:
            found[f"{job.partition('[')[0]}.{index if index not in ('-', '') else 0}"] = (state, code)
        return found

    def _all_ended(self) -> bool:
        states = self._states()
        return all(states.get(name, ("", ""))[0] in ("DONE", "EXIT") for name in self.expected)

    def _story(self) -> str:
        states = self._states()
        open_jobs = {name: states.get(name) for name in self.expected if states.get(name, ("",))[0] not in ("DONE", "EXIT")}
        return f"seed {self.seed}, kills {self.kills}, open {open_jobs}\n{self.cluster.logs()}"


def _named(name: str, parent: int) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if f"({name})" in stat and int(stat.rpartition(")")[2].split()[1]) == parent:
                found.append(int(entry))
    return found
