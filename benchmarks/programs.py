"""Programs timed as a user runs them: one, several loops of one, and a wait for what they caused."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from benchmarks.floors import run
from benchmarks.line import best_of, seconds

LOOP = 'many=$1; shift; while [ "$many" -gt 0 ]; do "$@" || exit 1; many=$((many - 1)); done'
LOOPS = 4
PATIENCE = 240.0


def each_ms(words: tuple[str, ...], env: dict[str, str], times: int = 15) -> float:
    """Median milliseconds of a program; ``words[0]`` is its path."""
    return 1000 * best_of(lambda: run(words, env), times)


def rate_of_loops(words: tuple[str, ...], env: dict[str, str], each: int) -> float:
    """Programs a second, when four loops of it run ``each`` at once."""

    def all_of_them() -> None:
        shell = ("/bin/sh", "-c", LOOP, "sh", str(each), *words)
        started = [subprocess.Popen(shell, env=env, stdout=subprocess.DEVNULL) for _ in range(LOOPS)]
        failed = [process.wait() for process in started]
        if any(failed):
            raise SystemExit(f"{words[0]} failed")

    return LOOPS * each / seconds(all_of_them)


def wait(done: Callable[[], bool], what: str, pause: float = 0.005, patience: float = PATIENCE) -> None:
    """Until ``done``, asked every ``pause`` seconds; raises TimeoutError after so many seconds of ``patience``."""
    deadline = time.monotonic() + patience
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:.0f} s for {what}")
        time.sleep(pause)
