"""``make bench``: every figure with its floor from the same run, one JSON object a line. ``ONLY=name`` for one of them.

    .venv/bin/python -m benchmarks.run [NAME | ONLY=NAME]

A name is a metric, or what comes before ``_`` in several. The whole takes under ten minutes on two cores.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.line import Line, show

FAMILIES = (
    "commands",
    "bulk",
    "throughput",
    "ranks",
    "kills",
    "pending",
    "restart",
    "cycles",
    "marks",
    "busy",
    "masses",
    "scale",
    "store_commit",
    "flat",
)


def plan(names: Collection[str]) -> list[tuple[str, set[str]]]:
    """The families to run and the metrics wanted of each; all of them without names."""
    found = []
    for family in FAMILIES:
        metrics = importlib.import_module(f"benchmarks.{family}").METRICS
        wanted = {one for one in metrics if not names or any(one == name or one.startswith(f"{name}_") for name in names)}
        if wanted:
            found.append((family, wanted))
    return found


def lines(planned: Iterable[tuple[str, set[str]]]) -> Iterator[Line]:
    """The figures, as they come."""
    for family, wanted in planned:
        yield from importlib.import_module(f"benchmarks.{family}").lines(wanted)


def main(argv: list[str]) -> int:
    """Run what is wanted; 2 if there is nothing of that name."""
    only = argv[0].removeprefix("ONLY=") if argv else os.environ.get("ONLY", "")
    planned = plan([only] if only else [])
    if not planned:
        print(f"bench: no benchmark is called {only}", file=sys.stderr)
        return 2
    show(lines(planned))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
