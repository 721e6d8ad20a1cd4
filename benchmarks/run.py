"""``make bench``: every figure with its floor from the same run, one JSON object a line. ``ONLY=name`` for one of them.

    .venv/bin/python -m benchmarks.run [NAME | ONLY=NAME]

A name is a metric, or what comes before ``_`` in several. The whole takes under ten minutes on two cores.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.line import show

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


def main(argv: list[str]) -> int:
    """Run what is wanted; 2 if there is nothing of that name."""
    only = argv[0].removeprefix("ONLY=") if argv else os.environ.get("ONLY", "")
    found = False
    for name in FAMILIES:
        family = importlib.import_module(f"benchmarks.{name}")
        wanted = {one for one in family.METRICS if not only or one == only or one.startswith(f"{only}_")}
        if wanted:
            found = True
            show(family.lines(wanted))
    if not found:
        print(f"bench: no benchmark is called {only}", file=sys.stderr)
    return 0 if found else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
