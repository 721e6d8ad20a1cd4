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


def _figures(failed: list[str]) -> Iterator[Line]:
    yield from measured(WHOLE, [row.name for row in ROWS], failed)
    yield from sites(failed)


def main(argv: list[str]) -> int:
    """Measure, write the file, then the page; 1 if a benchmark has failed, without which both are."""
    note = " ".join(argv).removeprefix("NOTE=") or os.environ.get("NOTE", "")
    begun = Begun()
    figures: list[Line] = []
    failed: list[str] = []
    for one in _figures(failed):
        figures.append(one)
        print(json.dumps(one), flush=True)
    results = begun.end(figures, note)
    print(f"bench-keep: {save(results)}: {len(figures)} figures in {results.minutes} minutes", file=sys.stderr)
    for why in failed:
        print(f"bench-keep: {why}", file=sys.stderr)
    return report.main([]) or bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
