"""What a user waits for at the prompt: one bsub, one bjobs, loops of bsub, an array of 10,000. Job outputs go to /dev/null.

The floor is Python started to do nothing, by the same interpreter as the commands; ``_plain`` are commands without their
native form (docs/native.md), where there is one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.cluster import Cluster
from benchmarks.line import ROUNDS, Line, best_of, line, seconds
from cli.local.folder import commands_folder

METRICS = (
    "submit_command",
    "submit_command_plain",
    "query_command",
    "submit_rate_4",
    "submit_rate_4_plain",
    "array_submit_10000",
)
EACH = 15
LOOPS, COMMANDS = 4, 50
LOOP = 'many=$1; shift; while [ "$many" -gt 0 ]; do "$@" || exit 1; many=$((many - 1)); done'
BARE = (sys.executable, "-I", "-S", "-c", "pass")


def lines(wanted: set[str]) -> Iterator[Line]:
    """All three on one cluster whose host takes no jobs, so that nothing else runs."""
    with Cluster() as cluster:
        cluster.command("badmin", "hclose", "host1")
        plain = {**cluster.environ, "LAVA_NATIVE": "N"}
        if "submit_command" in wanted:
            yield _one("submit_command", _bsub(), cluster.environ, "one bsub, committed")
        if "submit_command_plain" in wanted:
            yield _one("submit_command_plain", _bsub(), plain, "one bsub, committed, by Python")
        if "query_command" in wanted:
            yield _one("query_command", (str(commands_folder() / "bqueues"),), cluster.environ, "one bqueues")
        if "submit_rate_4" in wanted:
            yield _rate("submit_rate_4", cluster.environ)
        if "submit_rate_4_plain" in wanted:
            yield _rate("submit_rate_4_plain", plain)
        if "array_submit_10000" in wanted:
            yield _array(cluster)


def _run(words: tuple[str, ...], env: dict[str, str]) -> None:
    pid = os.posix_spawn(words[0], words, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{words[0]} failed")


def _bsub(*words: str) -> tuple[str, ...]:
    return (str(commands_folder() / "bsub"), "-o", "/dev/null", *words, "/bin/true")


def _one(name: str, words: tuple[str, ...], environ: dict[str, str], what: str) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(1000 * best_of(lambda: _run(BARE, environ), EACH))
        values.append(1000 * best_of(lambda: _run(words, environ), EACH))
    return line(name, "ms", values, floors, f"{what}; floor: python3 -I -S -c pass")


def _rate(name: str, environ: dict[str, str]) -> Line:
    def loops(words: tuple[str, ...]) -> float:
        shell = ("/bin/sh", "-c", LOOP, "sh", str(COMMANDS), *words)

        def all_of_them() -> None:
            started = [subprocess.Popen(shell, env=environ, stdout=subprocess.DEVNULL) for _ in range(LOOPS)]
            if any(process.wait() for process in started):
                raise SystemExit(f"{words[0]} failed")

        return LOOPS * COMMANDS / seconds(all_of_them)

    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(loops(BARE))
        values.append(loops(_bsub()))
    return line(name, "jobs/s", values, floors, "4 parallel loops of bsub; floor: of python3 -I -S -c pass")


def _array(cluster: Cluster) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(1000 * best_of(lambda: _run(BARE, cluster.environ), EACH))
        values.append(1000 * best_of(lambda: _run(_bsub("-J", "a[1-10000]"), cluster.environ), 5))
    return line("array_submit_10000", "ms", values, floors, "bsub -J 'a[1-10000]'; floor: python3 -I -S -c pass")
