"""What a user waits for at the prompt: one bsub, loops of bsub, an array of 10,000. Job outputs go to /dev/null.

The floor is Python started to do nothing, by the same interpreter as the commands.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.cluster import Cluster
from benchmarks.line import ROUNDS, Line, best_of, line, seconds
from cli.local.folder import commands_folder

METRICS = ("submit_command", "submit_rate_4", "array_submit_10000")
EACH = 15
LOOPS, COMMANDS = 4, 25
BARE = (sys.executable, "-I", "-S", "-c", "pass")


def lines(wanted: set[str]) -> Iterator[Line]:
    """All three on one cluster whose host takes no jobs, so that nothing else runs."""
    with Cluster() as cluster:
        cluster.command("badmin", "hclose", "host1")
        if "submit_command" in wanted:
            yield _submit_command(cluster)
        if "submit_rate_4" in wanted:
            yield _submit_rate(cluster)
        if "array_submit_10000" in wanted:
            yield _array(cluster)


def _run(words: tuple[str, ...], env: dict[str, str]) -> None:
    pid = os.posix_spawn(words[0], words, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{words[0]} failed")


def _bsub(*words: str) -> tuple[str, ...]:
    return (str(commands_folder() / "bsub"), "-o", "/dev/null", *words, "/bin/true")


def _submit_command(cluster: Cluster) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(1000 * best_of(lambda: _run(BARE, cluster.environ), EACH))
        values.append(1000 * best_of(lambda: _run(_bsub(), cluster.environ), EACH))
    return line("submit_command", "ms", values, floors, "one bsub, committed; floor: python3 -I -S -c pass")


def _submit_rate(cluster: Cluster) -> Line:
    def loops(words: tuple[str, ...]) -> float:
        def loop(_: int) -> None:
            for _ in range(COMMANDS):
                subprocess.run(words, env=cluster.environ, stdout=subprocess.DEVNULL, check=True)

        with ThreadPoolExecutor(LOOPS) as pool:
            return LOOPS * COMMANDS / seconds(lambda: list(pool.map(loop, range(LOOPS))))

    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(loops(BARE))
        values.append(loops(_bsub()))
    return line("submit_rate_4", "jobs/s", values, floors, "4 parallel loops of bsub; floor: of python3 -I -S -c pass")


def _array(cluster: Cluster) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(1000 * best_of(lambda: _run(BARE, cluster.environ), EACH))
        values.append(1000 * best_of(lambda: _run(_bsub("-J", "a[1-10000]"), cluster.environ), 5))
    return line("array_submit_10000", "ms", values, floors, "bsub -J 'a[1-10000]'; floor: python3 -I -S -c pass")
