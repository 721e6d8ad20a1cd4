"""Jobs that die as soon as a generation of theirs is whole, before any look at their folder while they run: it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

pytestmark = pytest.mark.cluster(hosts=2, slots=4)
RUNS = 10

WRITE = """
write() {
    cd $LSB_CHKPNT_DIR
    mkdir gen-$1.tmp
    echo words > gen-$1.tmp/state
    echo '{"files": {"state": {"size": 6}}}' > gen-$1.tmp/MANIFEST
    mv gen-$1.tmp gen-$1
}
"""
ALONE = """#!/bin/sh
echo from ${LAVA_CKPT_GENERATION:-nothing}
[ "$LAVA_CKPT_GENERATION" = 2 ] && exit 0
write $((${LAVA_CKPT_GENERATION:-0} + 1))
kill -9 $$
"""
RANKS = """#!/bin/sh
[ -n "$LAVA_CKPT_GENERATION" ] && exec echo from $LAVA_CKPT_GENERATION
[ $PMI_RANK = 0 ] && write 1 && exec sleep 600
until [ -e $LSB_CHKPNT_DIR/gen-1 ]; do sleep 0.01; done
kill -9 $$
"""


def write(path: Path, text: str) -> Path:
    first, rest = text.split("\n", 1)
    path.write_text(f"{first}\n{WRITE}{rest}")
    path.chmod(0o755)
    return path


def test_a_job_goes_on_from_what_it_wrote_just_before_it_was_killed(cluster: Cluster, tmp_path: Path) -> None:
    program = write(tmp_path / "alone", ALONE)
    job = cluster.submit(f'-J "again[1-{RUNS}]" -k "{tmp_path}/ck method=app" -o {tmp_path}/out.%I {program}')
    assert cluster.wait_end(job, timeout=120) == ["DONE"] * RUNS, cluster.run(f"bhist -l {job}").stdout
    for number in range(1, RUNS + 1):
        said = (tmp_path / f"out.{number}").read_text().splitlines()
        assert [line for line in said if line.startswith("from")] == ["from nothing", "from 1", "from 2"]
    story = cluster.run(f"bhist -l '{job}[1]'").stdout
    assert "killedbySIGKILL;itgoesonfromcheckpointgeneration2" in "".join(story.split())


def test_a_job_goes_on_where_another_host_than_the_first_has_failed(cluster: Cluster, tmp_path: Path) -> None:
    program = write(tmp_path / "ranks", RANKS)
    words = f'-a mpi -n 2 -R "span[ptile=1]" -k "{tmp_path}/ck method=app" -o {tmp_path}/out {program}'
    job = cluster.submit(words)
    assert cluster.wait_end(job, timeout=60) == ["DONE"], cluster.run(f"bhist -l {job}").stdout
    assert (tmp_path / "out").read_text().count("from 1\n") == 2
