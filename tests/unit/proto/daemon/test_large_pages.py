"""Memory that is moved into large pages."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import mmap
from proto.daemon import large_pages

def private(size):
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

dense, sparse = private(16 << 20), private(64 << 20)
dense[:] = bytes(range(256)) * (16 << 12)
sparse[::1 << 20] = b"x" * 64

def used():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE

before = used()
found = large_pages.gather()
assert dense[:] == bytes(range(256)) * (16 << 12)
assert used() - before < 8 << 20, used() - before
with open("/proc/self/smaps_rollup") as file:
    [large] = [int(line.split()[1]) * 1024 for line in file if line.startswith("AnonHugePages:")]
assert large >= found * large_pages.SIZE
"""


def test_what_is_in_use_is_as_it_was_and_hardly_any_memory_is_added() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_no_more_than_a_number_of_pages_are_made() -> None:
    subprocess.run([sys.executable, "-c", f"{SCRIPT}\nlarge_pages.MOST = 2\nassert large_pages.gather() <= 2"], check=True)
