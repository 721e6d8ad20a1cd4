"""Output that a host keeps is limited for a job, for a user and by what stays free of the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.disks import small_disk
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

WRITES = "head -c {size}M /dev/zero; sleep 600"


def _cluster(folder: Path, conf: str) -> Cluster:
    (folder / "conf").mkdir()
    (folder / "conf" / "lsf.conf").write_text(conf)
    return Cluster(folder / "cluster", options=("--conf", str(folder / "conf")))


def test_a_job_that_writes_50_mb_where_10_are_allowed_is_ended_and_told_why(tmp_path: Path) -> None:
    """Whether it has ``-o`` or not; one whose file is written directly, and one with less, go on."""
    tmp_path.chmod(0o755)
    with _cluster(tmp_path, "LAVA_OUTPUT_LIMIT=10\n") as cluster:
        direct = cluster.submit(f"-o /dev/null '{WRITES.format(size=50)}'")
        few = cluster.submit(f"'{WRITES.format(size=5)}'")
        kept = cluster.submit(f"'{WRITES.format(size=50)}'")
        copied = cluster.submit(f"-o {tmp_path}/out '{WRITES.format(size=50)}'")
        for job in (kept, copied):
            cluster.wait_for(job, "EXIT")
            told = "TERM_OUTPUTLIMIT: job killed after reaching the limit of output that its host keeps"
            for command in (f"bjobs -l {job}", f"bhist -l {job}"):
                assert "".join(told.split()) in _words(cluster, command), command
            assert cluster.run(f"bjobs -noheader -o exit_reason {job}").stdout.strip() == told
        with (tmp_path / "out").open("rb") as file:
            assert b"TERM_OUTPUTLIMIT: job killed after reaching the limit" in file.read(4096)
        assert cluster.states(direct) == cluster.states(few) == ["RUN"]


def test_a_user_over_the_limit_loses_what_the_oldest_jobs_left(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with _cluster(tmp_path, "LAVA_OUTPUT_USER_LIMIT=30\n") as cluster:
        finished = []
        for _ in range(3):
            finished.append(cluster.submit("'head -c 9M /dev/zero'"))
            cluster.wait_for(finished[-1], "DONE")  # the oldest is the one whose file was written first
        cluster.kill("agent-host1")
        cluster.up()
        running = cluster.submit(f"'{WRITES.format(size=9)}'")
        wait_until(lambda: not _kept(cluster, finished[0]), 60, cluster.logs)
        assert _kept(cluster, finished[1])
        assert _kept(cluster, finished[2])
        cluster.wait_for(running, "RUN")


def _words(cluster: Cluster, command: str) -> str:
    """What it prints, without the ends of lines and the blanks at them."""
    return "".join(cluster.run(command).stdout.split())


def _kept(cluster: Cluster, job: int) -> list[Path]:
    return list(cluster.folder.path.rglob(f"{job}.out"))


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "100m") as folder:
        yield folder


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_the_largest_job_ends_before_the_disk_is_full(tmp_path: Path, small_disk: Path) -> None:
    tmp_path.chmod(0o755)
    conf = f"LAVA_OUTPUTDIR={small_disk}\nLAVA_OUTPUT_USER_LIMIT=0\nLAVA_OUTPUT_RESERVE=20\n"
    with _cluster(tmp_path, conf) as cluster:
        few = cluster.submit(f"'{WRITES.format(size=10)}'")
        grows = cluster.submit("'while :; do head -c 1M /dev/zero; sleep 0.1; done'")
        cluster.wait_for(grows, "EXIT", timeout=60)
        assert "TERM_OUTPUTDISK:jobkilledbecauseitsoutputfilledthedisk" in _words(cluster, f"bjobs -l {grows}")
        disk = os.statvfs(small_disk)
        assert disk.f_bavail * disk.f_frsize > 0
        assert cluster.states(few) == ["RUN"]
