"""``make bench-check``: whether lava has lost speed, or grown, against the kept results; exit status 1 if so.

    .venv/bin/python benchmarks/kept/check.py [ALL=1]

A few benchmarks of some minutes, or with ALL=1 every one that is kept. What has lost 30 % or more is measured again, at most
twice, and the best counts: one bad round on a busy machine is no loss. Figures are printed as they come; on stderr, one
line for each loss that stays.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.kept.compare import Loss, better, in_common, losses
from benchmarks.kept.measure import QUICK, QUICK_ROWS, WHOLE, measured
from benchmarks.kept.results import newest
from benchmarks.line import Line
from benchmarks.peers.rows import ROWS
from benchmarks.run import plan

AGAIN = 2


def again(found: Sequence[Loss]) -> tuple[set[str], set[str]]:
    """The benchmarks, and the rows beside peers, that measure what was lost once more."""
    metrics = {loss.kept.metric for loss in found}
    rows = {row.name for row in ROWS if any(metric.startswith(f"beside_{row.name}_") for metric in metrics)}
    known = {name for _, names in plan([]) for name in names}
    own = {metric for metric in metrics if not metric.startswith("beside_")}
    # a metric of a benchmark may be one of several that it makes: the longest name that is its begin
    return {max((name for name in known if _of(metric, name)), key=len, default=metric) for metric in own}, rows


def _of(metric: str, name: str) -> bool:
    return metric == name or metric.startswith(f"{name}_")


def main(argv: list[str]) -> int:
    """Measure and compare; 2 if there is nothing to compare with."""
    kept = newest(len(os.sched_getaffinity(0)))
    if kept is None:
        return _say("benchmarks/results has none: make bench-keep", 2)
    whole = argv == ["ALL=1"] or os.environ.get("ALL") == "1"
    names, rows = (WHOLE, [row.name for row in ROWS]) if whole else (QUICK, QUICK_ROWS)
    failed: list[str] = []
    now = _shown(measured(names, rows, failed))
    found = losses(kept.figures, now)
    for _ in range(AGAIN):
        if found:
            lost_names, lost_rows = again(found)
            _say(f"measured again: {' '.join(sorted({loss.kept.metric for loss in found}))}", 0)
            now = better(now, _shown(measured(lost_names, lost_rows, failed)))
            found = losses(kept.figures, now)
    compared = in_common(kept.figures, now)
    for why in (*failed, *map(str, found)):
        _say(why, 1)
    if not compared:
        return _say(f"nothing in common with the results of {kept.date}", 2)
    said = f"{len(found)} of {compared} figures have lost 30 % or more since {kept.date} ({kept.commit})"
    return _say(said, 1 if found or failed else 0)


def _shown(lines: Iterator[Line]) -> list[Line]:
    """All of them, printed as they come."""
    found = []
    for one in lines:
        found.append(one)
        print(json.dumps(one), flush=True)
    return found


def _say(text: str, status: int) -> int:
    print(f"bench-check: {text}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
