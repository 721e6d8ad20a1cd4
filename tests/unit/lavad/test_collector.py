"""The collector of processes with a whole cluster in memory."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import gc
from lavad.collector import THRESHOLDS, look_rarely
look_rarely()
assert gc.isenabled() and gc.get_threshold() == THRESHOLDS
looks = []
gc.callbacks.append(lambda phase, info: looks.append(info["generation"]))
kept = [[n] for n in range(20_000)]
assert not looks
for n in range(100_000):
    cycle = []
    cycle.append(cycle)
assert looks
"""


def test_cycles_are_looked_for_rarely_and_still_found() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True)
