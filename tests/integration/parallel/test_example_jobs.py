"""The example programs as jobs over three hosts: right results, every rank in its place, a lost host survived."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import SLOW, wait_until

EXAMPLES = Path(__file__).parents[3] / "examples"
PAUSE = 0.2
PLATE = f"--size 40 --steps {int(4 * max(SLOW, 2) / PAUSE)}"
"""It is not at its end before its host is lost: some seconds, more where deadlines are stretched."""


pytestmark = pytest.mark.cluster(hosts=3)


@pytest.mark.parametrize(("ranks", "tile"), [(1, 1), (4, 2), (7, 3), (12, 4)])
def test_all_ranks_greet_rank_0(cluster: Cluster, tmp_path: Path, ranks: int, tile: int) -> None:
    """The greetings of all ranks, in order, over one to three hosts."""
    program = EXAMPLES / "greeting" / "greeting.py"
    cluster.submit(f'-K -a mpi -n {ranks} -R "span[ptile={tile}]" -o out python {program}', cwd=tmp_path)
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[:ranks] == [f"Greetings from process {rank} of {ranks}!" for rank in range(ranks)]


@pytest.mark.parametrize(("ranks", "tile", "size"), [(4, 2, 64), (5, 2, 33), (8, 3, 5)])
def test_matmul_over_hosts(cluster: Cluster, tmp_path: Path, ranks: int, tile: int, size: int) -> None:
    """Blocks of shared files, also when the ranks do not divide the rows."""
    folder = EXAMPLES / "matmul"
    cluster.run(f"python {folder}/generate.py A B --size {size}", cwd=tmp_path)
    cluster.submit(f'-K -a mpi -n {ranks} -R "span[ptile={tile}]" -o out python {folder}/matmul.py A B C', cwd=tmp_path)
    assert cluster.run(f"python {folder}/check.py A B C", cwd=tmp_path).stdout.startswith("right")
    hosts = re.findall(r"rank (\d+) of \d+ on (host\d)", (tmp_path / "out").read_text())
    assert sorted(int(rank) for rank, _ in hosts) == list(range(ranks))
    assert max([host for _, host in hosts].count(name) for name in cluster.hosts) <= tile


@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
def test_heat_survives_the_loss_of_a_host(tmp_path: Path, which: int) -> None:
    """Kill -9 of a whole host of the job; the end result is the undisturbed one, bit by bit."""
    tmp_path.chmod(0o755)
    program = EXAMPLES / "heat" / "heat.py"
    with Cluster(tmp_path / "cluster", hosts=3, slots=2) as cluster:
        cluster.run(f"python {program} reference --reference {PLATE}", cwd=tmp_path)
        words = f'-a mpi -n 4 -R "span[ptile=2]" -k "ck method=app" -o out python {program} result {PLATE} --pause {PAUSE}'
        job = cluster.submit(words, cwd=tmp_path)
        out = tmp_path / "out"
        wait_until(lambda: out.exists() and "steps 0 to" in out.read_text(), 30, "the first step")
        cluster.run(f"bchkpnt {job}", cwd=tmp_path)
        wait_until((tmp_path / "ck" / str(job) / "gen-1" / "MANIFEST").exists, 30, "a checkpoint")
        wait_until(lambda: "checkpoint at step" in out.read_text(), 30, "the program to say so")
        hosts = cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")
        cluster.kill_host(hosts[which])
        cluster.wait_for(job, "DONE", timeout=120)
        text = wait_until(lambda: out.read_text() if "Sender: LSF" in out.read_text() else "", 30, "the report")
        assert re.search(r"restarted from generation 1 at step \d", text)
        assert text.count("Sender: LSF System") == 1
        assert "\nSuccessfully completed.\n" in text
        assert "Exited" not in text
        assert (tmp_path / "result").read_bytes() == (tmp_path / "reference").read_bytes()
        cluster.up()
