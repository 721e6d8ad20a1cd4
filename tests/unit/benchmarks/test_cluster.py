"""CPU time of a daemon: what its forks used counts, also once they have ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.cluster import with_forks

USED = 0.1
CODE = f"""
import os, sys, time
reading, writing = os.pipe()
child = os.fork()
if not child:
    while time.process_time() < {USED}:
        pass
    os.write(writing, b"u")
    os.read(0, 1)
    os._exit(0)
os.read(reading, 1)
print("used", flush=True)
os.waitpid(child, 0)
print("ended", flush=True)
os.read(0, 1)
"""


@pytest.fixture
def forked() -> Iterator[subprocess.Popen[bytes]]:
    """A process whose fork has used CPU time, and ends when it is written to; then it waits itself."""
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_cpu_time_of_a_fork_counts_while_it_runs_and_after_its_end(forked: subprocess.Popen[bytes]) -> None:
    assert forked.stdin is not None
    assert forked.stdout is not None
    assert forked.stdout.readline() == b"used\n"
    running = with_forks(forked.pid)
    forked.stdin.write(b"e")
    forked.stdin.flush()
    assert forked.stdout.readline() == b"ended\n"
    assert with_forks(forked.pid) >= running >= USED - 0.02
