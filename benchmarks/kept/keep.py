"""``make bench-keep``: all that the page of performance shows, as a new file of ``benchmarks/results``, and the page from it.

    .venv/bin/python benchmarks/kept/keep.py [NOTE]

NOTE, or the variable of that name, is kept with it: what else the machine did meanwhile, for example. Figures are printed as they
come.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.kept import report
from benchmarks.kept.measure import WHOLE, measured, sites
from benchmarks.kept.results import Begun, save
from benchmarks.line import Line
from benchmarks.peers.rows import ROWS


def _figures() -> Iterator[Line]:
    yield from measured(WHOLE, [row.name for row in ROWS])
    yield from sites()


def main(argv: list[str]) -> int:
    """Measure, write the file, then the page."""
    note = " ".join(argv).removeprefix("NOTE=") or os.environ.get("NOTE", "")
    begun = Begun()
    figures = []
    for one in _figures():
        figures.append(one)
        print(json.dumps(one), flush=True)
    results = begun.end(figures, note)
    print(f"bench-keep: {save(results)}: {len(figures)} figures in {results.minutes} minutes", file=sys.stderr)
    return report.main([])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
