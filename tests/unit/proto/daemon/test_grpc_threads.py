"""How gRPC reads sockets: its own words for it are known to the release that is installed, and stay with the daemon."""

from __future__ import annotations

import os
import subprocess
import sys

from proto.daemon import grpc_threads

CODE = """
import os
from proto.daemon import grpc_threads
{before}
grpc_threads.load()
import grpc.aio
print(os.environ.get(grpc_threads.SWITCH))
"""


def load(before: str = "", **environ: str) -> tuple[str, str]:
    """What is left in the environment, and what gRPC says, in a process that loads it."""
    code = CODE.format(before=before)
    mine = {name: value for name, value in os.environ.items() if name != grpc_threads.SWITCH} | environ
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=mine, timeout=60)
    return done.stdout.strip(), done.stderr


def test_grpc_knows_the_words_and_no_program_inherits_them() -> None:
    left, said = load()
    assert left == "None"
    assert "Unknown experiment" not in said


def test_grpc_says_so_of_a_word_that_it_does_not_know() -> None:
    left, said = load("grpc_threads.READS = '-no_such_words'")
    assert left == "None"
    assert "Unknown experiment" in said


def test_what_the_site_has_set_stays() -> None:
    assert load(**{grpc_threads.SWITCH: "-event_engine_dns_no"})[0] == "-event_engine_dns_no"
