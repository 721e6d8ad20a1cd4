"""A running cluster: a site's checkpoint programs through bchkpnt, bmig, the loss of a host and brestart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checkpoint_programs import write_job, write_programs
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


@pytest.fixture
def two_hosts(tmp_path: Path) -> Cluster:
    """A cluster whose site has the method ``count``."""
    tmp_path.chmod(0o755)
    write_programs(tmp_path / "methods")
    write_job(tmp_path)
    (tmp_path / "staged").mkdir()
    (tmp_path / "there").mkdir()
    write_job(tmp_path / "there")
    variables = {"LSB_ECHKPNT_METHOD_DIR": str(tmp_path / "methods"), "LSB_ECHKPNT_METHOD": "count"}
    cluster = Cluster(tmp_path / "cluster", hosts=2, slots=2, environ=variables)
    return cluster


def ends_and_goes_on(cluster: Cluster, work: Path, job: int) -> None:
    """bchkpnt -k, and brestart on a host that has only what was staged."""
    cluster.run(f"bchkpnt -k {job}")
    cluster.wait_for(job, "EXIT")
    (work / "own").rename(work / "of another host")
    saved = (work / "of another host" / str(job) / "gen-2" / "state" / "count").read_text()
    again = int(cluster.run(f"brestart own {job}", cwd=work).stdout.split("<")[1].split(">")[0])
    wait_until(lambda: f"from {saved}" in (work / "out").read_text(), 60, "it is staged before its end is told")
    cluster.run(f"bkill {again}")


def test_a_job_goes_on_by_a_sites_programs_wherever_it_is(two_hosts: Cluster, tmp_path: Path) -> None:
    """The counter never falls back behind the newest checkpoint."""
    out, count = tmp_path / "out", tmp_path / "count"

    def begins(number: int) -> int:
        """From where the job counts after it has started so often."""
        lines = [line for line in out.read_text().splitlines() if line.startswith("from ")] if out.exists() else []
        return int(lines[number - 1].split()[1]) if len(lines) >= number else -1

    def at(generation: int, of: int) -> int:
        return int((tmp_path / "ck" / str(of) / f"gen-{generation}" / "state" / "count").read_text())

    def shown(command: str, text: str, often: int = 1) -> None:
        """LSF breaks its lines anywhere."""
        wanted = text.replace(" ", "")
        wait_until(lambda: "".join(cluster.run(command).stdout.split()).count(wanted) == often, 30, f"{text} in {command}")

    with two_hosts as cluster:
        job = cluster.submit('-k "ck method=count keep=3" -o out exec sh count.sh', cwd=tmp_path)
        wait_until(lambda: begins(1) == 0 and count.exists(), 30, "the job")
        cluster.run(f"bchkpnt {job}")
        shown(f"bhist -l {job}", "Checkpoint succeeded (generation 1, ")
        shown(f"bjobs -l {job}", "Kbytes count")
        first = cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip()
        cluster.run(f"bmig {job}")
        wait_until(lambda: begins(2) >= at(1, job), 30, "the job on the other host")
        second = cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip()
        assert {first, second} == {"host1", "host2"}
        assert begins(2) == at(2, job), "bmig makes a checkpoint first"
        assert ": it is migrated.\nIt is to be run again with the same jobid." in out.read_text()
        assert "Exited" not in out.read_text()
        shown(f"bhist -l {job}", "Execution Pid", 2)
        (tmp_path / "methods" / "echkpnt.count.mode").write_text("fails")
        cluster.run(f"bchkpnt {job}")
        shown(f"bhist -l {job}", "Checkpoint failed: echkpnt.count ended with exit code 3;")
        (tmp_path / "methods" / "echkpnt.count.mode").unlink()
        copied = tmp_path / "there"
        other = cluster.submit(
            f'-k "own method=count stage={tmp_path}/staged" -m "{second}+1 {first}" -o out exec sh count.sh', cwd=copied
        )
        wait_until(lambda: (copied / "count").exists(), 30, "a job whose checkpoints are on the disk of its host")
        cluster.run(f"bchkpnt {other}")
        shown(f"bhist -l {other}", "Checkpoint generation 1 is staged (")
        shown(f"bjobs -l {other}", "SIZE STAGED METHOD")
        saved = (copied / "own" / str(other) / "gen-1" / "state" / "count").read_text()
        cluster.kill_host(second)
        (copied / "own").rename(copied / "lost with its host")
        wait_until(lambda: begins(3) == at(2, job), 60, "the job on the host that is left")
        shown(f"bhist -l {job}", "Execution Pid", 3)
        wait_until(lambda: f"from {saved}" in (copied / "out").read_text(), 60, "the other one, from what was staged")
        ends_and_goes_on(cluster, copied, other)
        cluster.run(f"bchkpnt -k {job}")
        cluster.wait_for(job, "EXIT")
        shown(f"bjobs -l {job}", "TERM_CHKPNT: job killed after checkpointing")
        again = int(cluster.run(f"brestart ck {job}", cwd=tmp_path).stdout.split("<")[1].split(">")[0])
        wait_until(lambda: begins(4) == at(3, job), 30, "the job under its new number")
        cluster.run(f"bkill {again}")
        cluster.wait_end(again)
