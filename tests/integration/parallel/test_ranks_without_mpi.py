"""Ranks of -a mpi that use lava_client.ranks in place of MPI: they meet over hosts, write one file, and end together."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

pytestmark = pytest.mark.cluster(hosts=2)

WRITE = """
import os, sys
from lava_client.ranks import CollectiveFile, Ranks

def writes():
    return int(dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())["syscw"])

def pieces(ranks):
    for at in range(ranks.rank, 16384, ranks.size):
        yield at * 4096, at.to_bytes(4, "big") * 1024

with Ranks() as ranks:
    before = writes()
    with open("alone", "r+b" if ranks.rank else "wb", buffering=0) as file:
        ranks.barrier()
        for offset, data in pieces(ranks):
            os.pwrite(file.fileno(), data, offset)
    alone = writes() - before
    with CollectiveFile(ranks, "together") as file:
        file.write_at_all(pieces(ranks))
    hosts = ranks.allgather(os.environ["LAVA_HOST"])
    total = sum(ranks.allgather(file.writes))
    if ranks.rank == 0:
        print("hosts", sorted(set(hosts)), "writes", sum(ranks.allgather(alone)), total)
    else:
        ranks.allgather(alone)
"""
STAY = """
import os, sys
from lava_client.ranks import Ranks
with Ranks() as ranks:
    ranks.barrier()
    if ranks.rank == 3:
        os.kill(os.getpid(), 9)
    ranks.barrier()
    print("never", flush=True)
"""


def test_they_write_one_file_with_few_writes(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "write.py").write_text(WRITE)
    (tmp_path / "alone").touch()
    cluster.submit('-K -a mpi -n 4 -R "span[ptile=2]" -o out python write.py', cwd=tmp_path)
    [line] = [line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("hosts")]
    alone, together = map(int, line.split()[-2:])
    assert line.startswith("hosts ['host1', 'host2'] writes ")
    assert alone >= 16384
    assert together * 50 <= alone
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in ("alone", "together")]
    assert digests[0] == digests[1]
    assert (tmp_path / "together").stat().st_size == 64 << 20


def test_where_one_is_killed_all_end(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "stay.py").write_text(STAY)
    job = cluster.submit('-a mpi -n 4 -R "span[ptile=2]" -o out python stay.py', cwd=tmp_path)
    cluster.wait_for(job, "EXIT", timeout=60)
    text = (tmp_path / "out").read_text()
    assert re.search("rank 3 was killed by signal 9 on host[12]", text)
    assert "never" not in text
