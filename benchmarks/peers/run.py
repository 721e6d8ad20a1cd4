"""``make bench-peers``: lava beside what is installed of Slurm, HyperQueue and mpiexec.hydra, in turn in the same rounds.

    .venv/bin/python benchmarks/peers/run.py [ROW ... | ONLY=ROW]

One JSON object a line for each row and contender on stdout, with the machine's floors from right before its rounds; at the end a
table on stderr. A peer that is not installed, or fails, is named with the reason; the others are measured all the same.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.floors import floors
from benchmarks.line import Line
from benchmarks.peers import hq, hydra, slurm
from benchmarks.peers.lava import Lava
from benchmarks.peers.rows import ROWS, Contender, Measure, Row
from benchmarks.peers.table import Taken, lines, table


def peers() -> Iterator[Contender]:
    """Those that are installed; says of the others how they may be had."""
    lacking = slurm.missing()
    if lacking:
        _say(f"Slurm is not installed (no {', '.join(lacking)}): {slurm.HOW}")
    else:
        yield slurm.Slurm()
    python = hq.find()
    if python is None:
        _say(f"HyperQueue is not installed: {hq.HOW}")
    else:
        yield hq.HyperQueue(python)
    path = hydra.find()
    if path is None:
        _say(f"mpiexec.hydra is not installed: {hydra.HOW}")
    else:
        yield hydra.Hydra(path)


def measure(wanted: set[str]) -> Iterator[Line]:
    """The lines of the rows, as they come."""
    with ExitStack() as stack:
        measures: dict[str, dict[str, Measure]] = {}
        versions: dict[str, str] = {}
        for contender in (Lava(), *peers()):
            try:
                stack.enter_context(contender)
                measures[contender.name], versions[contender.name] = dict(contender.measures()), contender.version
            except (Exception, SystemExit) as error:
                _failed(contender.name, "start", error)
        for row in ROWS:
            if row.name in wanted:
                taken = _rounds(row, measures)
                for name, one in taken.items():
                    one.version = versions[name]
                yield from lines(row, taken)


def _rounds(row: Row, measures: Mapping[str, dict[str, Measure]]) -> dict[str, Taken]:
    """Each round lava, then each peer; what fails is left out from then on."""
    taken: dict[str, Taken] = {}
    for _ in range(row.rounds):
        for name, of_name in measures.items():
            one = of_name.get(row.name)
            if one is None:
                continue
            before = floors()
            try:
                value = one.value()
            except (Exception, SystemExit) as error:
                _failed(name, row.name, error)
                of_name.pop(row.name)
                taken.pop(name, None)
                continue
            kept = taken.setdefault(name, Taken(note=one.note))
            kept.values.append(value)
            kept.floors.append(before)
    for name, of_name in measures.items():
        if row.name in of_name:
            try:
                of_name[row.name].after()
            except (Exception, SystemExit) as error:
                _failed(name, f"after {row.name}", error)
    return taken


def _failed(name: str, what: str, error: BaseException) -> None:
    _say(f"{name}: {what}: {type(error).__name__}: {error}")


def _say(text: str) -> None:
    print(f"bench-peers: {text}", file=sys.stderr, flush=True)


def chosen(argv: list[str]) -> set[str]:
    """The rows that were asked for, all of them unless some were; raises SystemExit for one that there is not."""
    words = argv or os.environ.get("ONLY", "").split()
    only = {word.removeprefix("ONLY=") for word in words} - {""}
    known = {row.name for row in ROWS}
    if only - known:
        raise SystemExit(f"bench-peers: no row is called {', '.join(sorted(only - known))}; there are: {' '.join(sorted(known))}")
    return (only | {"memory_pending"} if only & {"query_all_10000", "query_one_10000", "restart_10000"} else only) or known


def main(argv: list[str]) -> int:
    """Print the lines, then the table."""
    found = []
    for one in measure(chosen(argv)):
        found.append(one)
        print(json.dumps(one), flush=True)
    if found:
        print(f"\n{table(found)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
