"""GPUs of a cluster that fail, are closed, or are still held: what becomes of them, and of the jobs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.fixtures import Shape, running
from tests.support.wait import wait_until

WAIT = 30.0
ONE = '-gpu "num=1:j_exclusive=yes"'
NOBODY = 65534


class Site:
    """The cluster, and what is wrong with its GPUs."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.gpu = sorted(set(re.findall(r"GPU-[0-9a-f-]{36}", cluster.run("bhosts -l").stdout)))
        """The UUIDs, by index."""
        assert len(self.gpu) == 4

    def faults(self, **found: str) -> None:
        """``g2="lost"``: from now on, and nothing else."""
        new = self.folder / "faults.new"
        new.write_text(json.dumps({name[1:]: fault for name, fault in found.items()}))
        new.rename(self.folder / "faults")

    def holds(self, options: str) -> tuple[int, Path]:
        """A job that uses its GPU until it is killed; its number and the file in which each of its starts writes a line."""
        file = self.folder / f"started{len(list(self.folder.iterdir()))}"
        said = f"echo $CUDA_VISIBLE_DEVICES $LAVA_ATTEMPT >> {file}"
        return self.cluster.submit(f"{options} '{said}; export LAVA_SIM_GPU_MB=100; exec sleep 1000'"), file

    def starts(self, file: Path, number: int = 1) -> list[str]:
        """The GPU and attempt of the newest start, once there were so many."""
        wait_until(lambda: file.exists() and len(file.read_text().splitlines()) >= number, WAIT, f"start {number} of {file}")
        return file.read_text().splitlines()[number - 1].split()

    def history(self) -> str:
        """badmin hhist, as one line."""
        return " ".join(self.cluster.run("badmin hhist", ok=False).stdout.split()).replace("ho st1", "host1")

    def told(self, *texts: str) -> None:
        """Wait until the history has these."""
        wait_until(lambda: all(_squeezed(text) in _squeezed(self.history()) for text in texts), WAIT, f"{texts} in the history")

    def ends_by_itself(self) -> tuple[int, Path]:
        """A job that ends a second after FILE.go is there: by then who is on its GPU is seen."""
        file = self.folder / f"started{len(list(self.folder.iterdir()))}"
        said = f"echo $CUDA_VISIBLE_DEVICES $LAVA_ATTEMPT >> {file}; until [ -e {file}.go ]; do sleep 0.1; done; sleep 1"
        return self.cluster.submit(f"{ONE} '{said}'"), file

    def story(self, job: int) -> str:
        return _squeezed(self.cluster.run(f"bhist -l {job}").stdout)


def _squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("gpus")
    shape = Shape(options=("--gpus", "4"), environ={"LAVA_SIM_GPU_FAULTS": str(folder / "faults")})
    with running(shape, folder) as cluster:
        yield Site(cluster, folder)


def holder(gpu: str, attempt: str, uid: int | None = None) -> subprocess.Popen[bytes]:
    """A process on a GPU that no part has started."""
    env = {"CUDA_VISIBLE_DEVICES": gpu, "LAVA_SIM_GPU_MB": "1", "LAVA_ATTEMPT": attempt}
    return subprocess.Popen(["/bin/sleep", "1000"], env=env, user=uid)


def test_a_lost_gpu_gives_up_its_job_and_stays_closed_over_a_new_master(site: Site):
    again, file = site.holds(f"-r {ONE}")
    assert site.starts(file)[0] == site.gpu[0]
    other, last = site.holds(f"-o {site.folder}/out {ONE}")
    assert site.starts(last)[0] == site.gpu[1]
    site.faults(g0="xid79", g1="xid48")
    assert site.starts(file, 2)[0] == site.gpu[2]
    assert _squeezed("Pending: GPU 0 of host host1 was lost (Xid 79);") in site.story(again)
    site.told(f"GPU <{site.gpu[1]}> of host <host1> closed by administrator <lava> Xid 48: double bit ECC error.")
    assert site.cluster.states(other) == ["RUN"]
    site.cluster.kill("lavad")
    site.cluster.up()
    site.cluster.run(f"bkill -s ABRT {other}")
    site.cluster.wait_end(other)
    assert _squeezed("GPU 1 of host host1 failed: Xid 48: double bit ECC error") in site.story(other)
    wait_until(lambda: "failed: Xid 48" in (site.folder / "out").read_text(), WAIT, "the report")
    waits = site.cluster.submit('-gpu "num=2:j_exclusive=yes" true')
    site.cluster.run(f"bkill {again}")
    site.cluster.wait_end(again)
    site.cluster.wait_for(waits, "DONE", timeout=WAIT)
    site.faults()
    closes, opens = (
        site.cluster.run("badmin gpuclose -C hot host1:2,3"),
        site.cluster.run(f"badmin gpuopen host1:0,{site.gpu[1]}"),
    )
    assert "Close <host1:2> ...... done\nClose <host1:3> ...... done\n" in closes.stderr
    assert f"Open <host1:0> ...... done\nOpen <host1:{site.gpu[1]}> ...... done\n" in opens.stderr
    refused = site.cluster.run("badmin gpuclose host1:0,9", ok=False)
    assert (refused.returncode, refused.stderr) == (255, "host1:9: No such GPU on host <host1>\n")
    waits, file = site.holds('-gpu "num=3:j_exclusive=yes"')
    site.told(f"GPU <{site.gpu[2]}> of host <host1> closed by administrator")
    why = "GPU 2 of host1 is closed: hot, GPU 3 of host1 is closed: hot"
    wait_until(lambda: why in site.cluster.run("bjobs -p").stdout, WAIT, "the reason that names the GPUs")
    site.cluster.run("badmin gpuopen host1:3")
    assert site.starts(file)[0] == ",".join((site.gpu[0], site.gpu[1], site.gpu[3]))
    site.cluster.run(f"bkill {waits}")
    site.cluster.wait_end(waits)
    site.cluster.run("badmin gpuopen host1:2")


def test_what_still_holds_a_gpu_is_ended_or_named(site: Site):
    job, file = site.ends_by_itself()
    gpu, attempt = site.starts(file)
    orphan = holder(gpu, attempt)
    file.with_name(f"{file.name}.go").touch()
    site.cluster.wait_end(job)
    assert orphan.wait(WAIT) == -9
    assert "still holds it" not in site.history()
    if os.getuid():
        pytest.skip("a process of another user needs root")
    job, file = site.ends_by_itself()
    gpu, attempt = site.starts(file)
    orphan = holder(gpu, attempt, NOBODY)
    try:
        file.with_name(f"{file.name}.go").touch()
        site.cluster.wait_end(job)
        site.told(
            f"GPU <{gpu}> of host <host1> closed by administrator <lava> process {orphan.pid} of user {NOBODY} still holds it."
        )
        job, file = site.holds(ONE)
        assert site.starts(file)[0] != gpu
    finally:
        orphan.kill()
        orphan.wait()
    site.told(f"GPU <{gpu}> of host <host1> opened by administrator <lava> nothing holds it any more.")
