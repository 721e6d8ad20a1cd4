"""What a user waits for at the prompt: one bsub, one bjobs, loops of bsub, an array of 10,000. Job outputs go to /dev/null.

The floor is Python started to do nothing, by the same interpreter as the commands; ``_plain`` are commands without their
native form (docs/native.md), where there is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cluster import Cluster
from benchmarks.floors import BARE
from benchmarks.line import ROUNDS, Line, line
from benchmarks.programs import each_ms, rate_of_loops
from cli.local.folder import commands_folder

METRICS = (
    "submit_command",
    "submit_command_plain",
    "query_command",
    "submit_rate_4",
    "submit_rate_4_plain",
    "array_submit_10000",
)
COMMANDS = 50


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


def _bsub(*words: str) -> tuple[str, ...]:
    return (str(commands_folder() / "bsub"), "-o", "/dev/null", *words, "/bin/true")


def _one(name: str, words: tuple[str, ...], environ: dict[str, str], what: str) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(each_ms(BARE, environ))
        values.append(each_ms(words, environ))
    return line(name, "ms", values, floors, f"{what}; floor: python3 -I -S -c pass")


def _rate(name: str, environ: dict[str, str]) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(rate_of_loops(BARE, environ, COMMANDS))
        values.append(rate_of_loops(_bsub(), environ, COMMANDS))
    return line(name, "jobs/s", values, floors, "4 parallel loops of bsub; floor: of python3 -I -S -c pass")


def _array(cluster: Cluster) -> Line:
    values, floors = [], []
    for _ in range(ROUNDS):
        floors.append(each_ms(BARE, cluster.environ))
        values.append(each_ms(_bsub("-J", "a[1-10000]"), cluster.environ, 5))
    return line("array_submit_10000", "ms", values, floors, "bsub -J 'a[1-10000]'; floor: python3 -I -S -c pass")
