"""What the machine itself takes for the three things that each job needs: a process, a start of Python, a write that is on disk.

Rule: floors are taken right before what they stand beside, since a loaded machine moves both.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile

from benchmarks.line import best_of

SPAWNS, STARTS, WRITES = 60, 7, 60
SILENT = [(os.POSIX_SPAWN_OPEN, stream, "/dev/null", os.O_WRONLY, 0) for stream in (1, 2)]
BARE = (sys.executable, "-I", "-S", "-c", "pass")
FLOORS = {
    "spawn": "posix_spawn and wait of /bin/true",
    "python": "python3 -I -S -c pass",
    "sync": "4 KiB appended to a file, and fdatasync",
}
"""Each floor's name, and what it is; all in milliseconds."""


def run(words: tuple[str, ...], env: dict[str, str]) -> None:
    """One program to its end, what it says to /dev/null; ends the benchmark if it fails."""
    pid = os.posix_spawn(words[0], words, env, file_actions=SILENT)
    if os.waitpid(pid, 0)[1]:
        raise SystemExit(f"{words[0]} failed")


def floors() -> dict[str, float]:
    """Medians in milliseconds, by name."""
    return {"spawn": _spawn(), "python": 1000 * best_of(lambda: run(BARE, dict(os.environ)), STARTS), "sync": sync()}


def _spawn() -> float:
    return 1000 * best_of(lambda: run(("/bin/true",), {}), SPAWNS)


def sync() -> float:
    """Milliseconds, in the folder for temporary files."""
    block = b"x" * 4096
    with tempfile.TemporaryFile(buffering=0) as file:

        def once() -> None:
            file.write(block)
            os.fdatasync(file.fileno())

        return 1000 * best_of(once, WRITES)


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The median of each floor over the rounds."""
    return {name: statistics.median(one[name] for one in rounds) for name in FLOORS}
