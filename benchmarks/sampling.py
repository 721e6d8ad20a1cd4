"""What one sample of all usage costs in CPU, beside psutil.

    python benchmarks/sampling.py [--processes 64,200] [--period 5]

One part with so many ranks, each a sleeping Python. CPU time of this process, so other work on the machine does not
show. ``plain`` is a sample without PSS, ``with PSS`` one that reads it (every half minute), ``core %`` what both make
at the period. ``raw`` reads the same files and keeps nothing: the floor; the psutil rows are the usual ways to do it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import psutil

from agent.monitor.procscan import list_pids, read_file, read_proc
from agent.monitor.usage import PSS_EVERY, PSS_SECOND, PartRoots, UsageSampler

CHILD = "import signal; print(flush=True); signal.pause()"


class Clock:
    """Time that goes on when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def cost_ms(call: Callable[[], object], times: int) -> float:
    """CPU milliseconds of one call."""
    call()
    began = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - began) * 1000 / times


def start_ranks(count: int) -> list[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-I", "-S", "-c", CHILD]
    ranks = [subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) for _ in range(count)]
    for rank in ranks:
        assert rank.stdout is not None
        rank.stdout.readline()
    return ranks


def measure(pids: list[int], times: int) -> dict[str, float]:
    """CPU milliseconds a sample, for each way."""
    clock = Clock()
    sampler = UsageSampler(None, clock)
    tasks = [(rank, pid, proc.start) for rank, pid in enumerate(pids) if (proc := read_proc(pid)) is not None]
    parts = {"uid": PartRoots(1, 1, tuple(tasks), os.getpid())}
    found = {"plain": cost_ms(lambda: sampler.sample(parts), times)}

    def with_pss() -> None:
        clock.now += 1e6
        sampler.sample(parts)

    found["with PSS"] = cost_ms(with_pss, max(1, times // 10))
    found["raw"] = cost_ms(lambda: [read_file(f"/proc/{pid}/stat") for pid in pids], times)
    kept = [psutil.Process(pid) for pid in pids]
    found["psutil kept"] = cost_ms(lambda: [look(process) for process in kept], times)
    found["psutil new"] = cost_ms(lambda: [look(psutil.Process(pid)) for pid in pids], times)
    found["psutil children"] = cost_ms(lambda: [look(one) for one in psutil.Process().children(recursive=True)], times)
    return found


def look(process: psutil.Process) -> tuple[object, ...]:
    with process.oneshot():
        return (process.cpu_times(), process.memory_info(), process.num_threads(), process.status(), process.ppid())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", default="64,200")
    parser.add_argument("--period", type=float, default=5.0)
    parser.add_argument("--times", type=int, default=50)
    args = parser.parse_args()
    for count in map(int, args.processes.split(",")):
        ranks = start_ranks(count)
        try:
            found = measure([rank.pid for rank in ranks], args.times)
        finally:
            for rank in ranks:
                rank.send_signal(signal.SIGKILL)
            for rank in ranks:
                rank.communicate()
        print(f"{count} ranks, {len(list_pids())} other processes on the host")
        for name, ms in found.items():
            print(f"  {name:16} {ms:8.2f} ms CPU")
        looks = PSS_EVERY / args.period
        mean = (found["plain"] * (looks - 1) + found["with PSS"]) / looks
        print(f"  core %           {mean / args.period / 10:8.3f} at {args.period:g} s (second PSS after {PSS_SECOND:g} s)")


if __name__ == "__main__":
    main()
