"""The pure scheduler, from ``cycle.py``: each of its times as a line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.line import Line, line
from cli.local.folder import ROOT

METRICS = ("cycle",)


def lines(wanted: set[str]) -> Iterator[Line]:
    """Milliseconds of the cycle that plans with what it knows (``warm``); the note has the others."""
    words = [sys.executable, "-m", "benchmarks.cycle"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for text in process.stdout:
            yield _line(json.loads(text))


def _line(found: dict[str, Any]) -> Line:
    name = found.pop("benchmark")
    warm = found.pop("warm_ms")
    note = ", ".join(f"{key} {value}" for key, value in found.items())
    return line(f"{name}_{found['classes']}x{found['hosts']}", "ms", [warm], (), note)
