"""How gRPC reads sockets: its own words for it are known to the release that is installed, and stay with the daemon."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


FORKS = """
import asyncio, os, sys
from proto.daemon import grpc_threads
grpc_threads.load()
import grpc
from proto.daemon.programs import Account, run_program

async def serve(address):
    server = grpc.aio.server()
    server.add_insecure_port(address)
    await server.start()
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        own = Account("me", os.getuid(), os.getgid(), tuple(os.getgroups()), "/")
        print(await run_program(["/bin/sh", "-c", "echo $GRPC_ENABLE_FORK_SUPPORT"], 30.0, account=own))
    await server.stop(None)

asyncio.run(serve(sys.argv[1]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run a program as a user, for which Python forks")
def test_grpc_has_no_part_in_a_fork_for_a_program(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKS, f"unix:{tmp_path}/socket"]
    mine = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=mine, timeout=60)
    assert (done.stdout, done.stderr) == ("('exited with 0', '')\n", "")
