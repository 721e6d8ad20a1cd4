"""The disk under the store fills up: a clear refusal, nothing half done, and everything goes on once there is room."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.parts.spool import Obeyed, Spool
from tests.support.daemons.starters import Rig
from tests.support.disks import small_disk
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "4m") as folder:
        yield folder


def _fill(path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)


def test_a_full_store_refuses_and_recovers(tmp_path: Path, small_disk: Path) -> None:
    tmp_path.chmod(0o755)
    options = ("--database", f"sqlite:///{small_disk}/lavad.sqlite")
    with Cluster(tmp_path / "cluster", hosts=1, slots=2, options=options) as cluster:
        running = cluster.submit(
            f"-o /dev/null 'touch {tmp_path}/began; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 3'"
        )
        wait_until((tmp_path / "began").exists, 30, cluster.logs)
        _fill(small_disk / "filler")
        refused = cluster.run("for i in 1 2 3 4 5 6 7 8; do bsub -H -o /dev/null -J $i true || exit; done", ok=False)
        assert refused.returncode == 255
        assert refused.stderr == "The master's store is full. Job not submitted.\n"
        accepted = refused.stdout.count("is submitted")
        wait_until(lambda: "the lease is not renewed" in cluster.logs(), 30, cluster.logs)
        (tmp_path / "go").touch()
        assert len(cluster.run("bjobs -noheader -o jobid").stdout.split()) in (accepted, accepted + 1)
        (small_disk / "filler").unlink()
        cluster.wait_for(running, "EXIT", timeout=30)
        assert cluster.run(f"bjobs -noheader -o exit_code {running}").stdout.strip() == "3"
        later = cluster.submit("-o /dev/null true")
        cluster.wait_for(later, "DONE")


def test_a_host_whose_spool_is_full_is_closed_until_there_is_room(tmp_path: Path) -> None:
    """Jobs whose output is kept there would fail on it one after the other; what runs there goes on, and ends."""
    tmp_path.chmod(0o755)
    spool = tmp_path / "cluster" / "spool" / "host1"
    spool.parent.mkdir(parents=True)
    with small_disk(spool, "8m"), Cluster(tmp_path / "cluster", hosts=2, slots=2) as cluster:
        running = cluster.submit(f"-m host1 -o /dev/null 'while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 3'")
        cluster.wait_for(running, "RUN")
        _fill(spool / "filler")
        why = f"host1: the disk of {spool} is full"
        wait_until(lambda: why in cluster.run("lava status").stdout, 30, cluster.logs)
        assert "it opens by itself" in cluster.run("lava status").stdout
        jobs = [cluster.submit("'echo kept'") for _ in range(5)]
        for job in jobs:
            assert cluster.wait_end(job) == ["DONE"]
            assert cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip() == "host2"
        (tmp_path / "go").touch()
        cluster.wait_for(running, "EXIT")
        (spool / "filler").unlink()
        wait_until(lambda: cluster.run("bhosts -noheader host1").stdout.split()[1] == "ok", 30, cluster.logs)
        cluster.wait_for(cluster.submit("-m host1 'echo kept'"), "DONE")


def test_a_starter_whose_disk_is_full_starts_and_ends_parts_in_the_room_that_it_has_set_aside(small_disk: Path) -> None:
    """Also after it was killed on the full disk, and what it has kept there is the truth."""
    rig = Rig(small_disk).start()
    try:
        _fill(small_disk / "filler")
        for number in range(40):
            assert os.waitstatus_to_exitcode(rig.run(f"u{number}", "exit 7")["status"]) == 7
        rig.order(rig.part("kept", "sleep 1000", stdout=None))
        rig.pid_of("kept")
        rig.kill()
        rig.start()
        states = {uid: part["state"] for uid, part in rig.known().items()}
        assert states.pop("kept") == "lost"
        assert states == {f"u{number}": "gone" for number in range(40)}
        assert os.waitstatus_to_exitcode(rig.run("later", "exit 8")["status"]) == 8
    finally:
        rig.stop()


def test_a_starter_whose_disk_is_full_goes_on_and_refuses_what_it_cannot_keep(small_disk: Path) -> None:
    """Nothing that runs is touched by it; what was written while there was no room is not in the way of what comes later."""
    rig = Rig(small_disk).start()
    try:
        rig.order(rig.part("runs", f"while [ ! -e {small_disk}/go ]; do sleep 0.05; done; exit 3"))
        rig.pid_of("runs")
        for number in range(30):
            rig.run(f"before {number} " + "x" * 200, "true")
        _fill(small_disk / "filler")
        for uid in rig.known().keys() - {"runs"}:
            rig.send({"do": "forget", "uids": [uid]})
        refused = [f"refused {number} " + "x" * 200 for number in range(6000)]
        rig.order(*(rig.part(uid, "true") for uid in refused))
        assert "journal" in rig.report(refused[0], "refused")["reason"]
        (small_disk / "filler").unlink()
        assert rig.run("later", "true")["status"] == 0
        rig.order(rig.part("kept", "sleep 1000"))
        rig.pid_of("kept")
        (small_disk / "go").touch()
        assert os.waitstatus_to_exitcode(rig.end("runs")["status"]) == 3
        rig.kill()
        rig.start()
        assert {uid: part["state"] for uid, part in rig.known().items()} == {"runs": "gone", "later": "gone", "kept": "lost"}
    finally:
        rig.stop()


def test_an_agent_obeys_a_new_master_on_a_full_disk(small_disk: Path) -> None:
    """What it obeyed stays safe on disk, shorter or longer than before."""
    spool = Spool(str(small_disk))
    spool.obey(Obeyed("a long name of a store", 9))
    _fill(small_disk / "filler")
    for obeyed in (Obeyed("a long name of a store", 10), Obeyed("b", 2), Obeyed("another long name of a store", 2**60)):
        spool.obey(obeyed)
        assert Spool(str(small_disk)).obeyed() == obeyed
    (small_disk / "filler").unlink()
    spool.obey(Obeyed("c", 3))
    assert Spool(str(small_disk)).obeyed() == Obeyed("c", 3)
