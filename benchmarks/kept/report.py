"""``make bench-report``: docs/performance.md, its plots and the table of README.md, from the last kept results. Measures nothing.

.venv/bin/python benchmarks/kept/report.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.kept.page import PLOTS, page
from benchmarks.kept.readme import with_table
from benchmarks.kept.results import newest
from cli.local.folder import ROOT

DOCS = ROOT / "docs"
README = ROOT / "README.md"


def files() -> dict[Path, str]:
    """What the last kept results make: the page, the plots and README.md, by path; empty if nothing is kept."""
    results = newest()
    if results is None:
        return {}
    text, plots = page(results)
    made = {DOCS / "performance.md": text, README: with_table(README.read_text(), results)}
    return made | {DOCS / PLOTS / name: plot for name, plot in plots.items()}


def main(argv: list[str]) -> int:
    """Write them; 2 if nothing is kept."""
    made = files()
    if not made:
        print("bench-report: benchmarks/results has none: make bench-keep", file=sys.stderr)
        return 2
    folder = DOCS / PLOTS
    folder.mkdir(exist_ok=True)
    for old in set(folder.glob("*.svg")) - made.keys():
        old.unlink()
    for path, text in made.items():
        path.write_text(text)
        print(f"bench-report: {path.relative_to(ROOT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
