"""Programs that know nothing of checkpoints, dumped by CRIU: migrated again and again, hosts lost, disks full, CRIU killed.

The result is that of a run in one piece, byte by byte. LAVA_TEST_CRIU names a CRIU other than this machine's.
"""

from __future__ import annotations

import getpass
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support import criu
from tests.support.disks import small_disk
from tests.support.live.cluster import Cluster
from tests.support.live.namespace import Apart, why_not
from tests.support.wait import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples" / "checkpoint_any"
MOVES = int(os.environ.get("LAVA_CHECKPOINT_MOVES", "20"))
KILLS = int(os.environ.get("LAVA_CHECKPOINT_KILLS", "10"))
HOSTS = ("host1", "host2", "host3")
PROGRAMS = {
    "pipeline": ("", f"{EXAMPLES}/words.sh"),
    "python": ("", f"{sys.executable} {EXAMPLES}/orbit.py"),
    "mpi": ("-a mpi -n 4", f"{sys.executable} {EXAMPLES}/ring.py"),
}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    criu.needed()
    found = Cluster(tmp_path / "cluster", hosts=3, slots=4)
    criu.tell(found)
    return found


class Run:
    """A job of one of the programs, and what it writes."""

    def __init__(self, cluster: Cluster, folder: Path, name: str, steps: int, checkpoints: str = "", where: str = "") -> None:
        self.cluster, self.name, self.steps = cluster, name, steps
        self.result = folder / "result"
        options, program = PROGRAMS[name]
        self.checkpoints = where or f"{folder}/ck"
        method = f'-k "{self.checkpoints} {checkpoints} method=criu" -o {folder}/out'
        self.job = cluster.submit(f"{options} {method} {program} {self.result} {steps} 0.05")
        self.made = Path(self.checkpoints) / str(self.job)

    def done(self) -> int:
        """Steps whose line it has written."""
        return self.result.read_text().count("step ") if self.result.exists() else 0

    def newest(self) -> int:
        return max((int(path.name[4:]) for path in self.made.glob("gen-*") if path.name[4:].isdigit()), default=0)

    def host(self) -> str:
        """Where it runs."""
        return self.cluster.run(f"bjobs -noheader -o exec_host {self.job}").stdout.strip().split(":")[0].split("*")[-1]

    def story(self) -> str:
        return self.cluster.run(f"bhist -l {self.job}", ok=False).stdout

    def wait(self, condition: Callable[[], object]) -> None:
        wait_until(condition, 120, self.story)

    def goes_on(self, steps: int = 5) -> None:
        """Until it has done some more."""
        before = self.done()
        self.wait(lambda: self.done() >= before + steps)

    def asked(self, command: str) -> int:
        """The newest generation before ``bmig`` or ``bchkpnt``, which is refused while the one before is under way."""
        known = self.newest()
        self.wait(lambda: self.cluster.run(f"{command} {self.job}", ok=False).returncode == 0)
        return known

    def check(self, folder: Path) -> None:
        """It ends well, with the result of a run in one piece."""
        self.cluster.wait_for(self.job, "DONE", timeout=600)
        options, program = PROGRAMS[self.name]
        calm = self.cluster.submit(f"{options} -o {folder}/calm.out {program} {folder}/calm {self.steps}")
        self.cluster.wait_for(calm, "DONE", timeout=300)
        assert self.result.read_bytes() == (folder / "calm").read_bytes(), self.story()


@pytest.mark.parametrize("name", PROGRAMS)
def test_migrated_again_and_again(tmp_path: Path, cluster: Cluster, name: str) -> None:
    with cluster:
        run = Run(cluster, tmp_path, name, 20 * MOVES + 50)
        for _ in range(MOVES):
            run.goes_on()
            known = run.asked("bmig")
            run.wait(partial(lambda known: run.newest() > known, known))
        run.check(tmp_path)
        assert run.story().count("Migration requested") == MOVES
        assert len(list(run.made.glob("gen-*"))) == 2, "two are kept"


@pytest.mark.skipif(bool(why_not()), reason=why_not())
@pytest.mark.parametrize("name", PROGRAMS)
def test_staged_from_the_disks_of_hosts_of_which_two_are_lost(tmp_path: Path, cluster: Cluster, name: str) -> None:
    """Each host has a folder of its own at the path of the checkpoints."""
    own, shared = tmp_path / "own", tmp_path / "shared"
    for folder in (own, shared, *(tmp_path / host for host in HOSTS)):
        folder.mkdir()
    with cluster:
        for host in HOSTS:
            apart = Apart(cluster, host)
            apart.again({})
            apart.replace(str(own), tmp_path / host)
        run = Run(cluster, tmp_path, name, 20 * MOVES + 200, f"stage={shared}", str(own))
        run.made = shared / getpass.getuser() / str(run.job)
        visited = set()
        for _ in range(MOVES):
            run.goes_on()
            visited.add(run.host())
            known = run.asked("bmig")
            run.wait(partial(lambda known: run.newest() > known, known))
        assert len(visited) > 1
        for _ in range(2):
            run.goes_on()
            known = run.asked("bchkpnt")
            run.wait(partial(lambda known: run.newest() > known, known))
            lost = run.host()
            cluster.kill_host(lost)
            shutil.rmtree(tmp_path / lost)
            run.wait(partial(lambda lost: run.host() not in ("", "-", lost), lost))
        run.check(tmp_path)
        assert not list(own.iterdir()), "nothing is written where hosts would share it"


@pytest.mark.parametrize("name", PROGRAMS)
def test_hosts_killed_at_random(tmp_path: Path, cluster: Cluster, name: str) -> None:
    """The work since the last checkpoint is done again; what the program had open is set back to that."""
    chance = random.Random(11)
    with cluster:
        run = Run(cluster, tmp_path, name, 40 * KILLS)
        for _ in range(KILLS):
            run.goes_on()
            known = run.asked("bchkpnt")
            if chance.random() < 0.7:
                run.wait(partial(lambda known: run.newest() > known, known))
                run.goes_on(3)
            cluster.kill_host(run.host())
            cluster.wait_for(run.job, "PEND", "RUN", timeout=120)
            cluster.up()
        run.check(tmp_path)


def test_a_full_disk_a_folder_that_is_gone_and_criu_killed(tmp_path: Path, cluster: Cluster) -> None:
    """The job runs on; where CRIU is killed at the wrong moment it crashes, and goes on from its newest generation."""
    with small_disk(tmp_path / "small", "24m") as disk, cluster:
        run = Run(cluster, tmp_path, "python", 600, where=str(disk))
        run.goes_on()
        run.asked("bchkpnt")
        run.wait(lambda: run.newest() == 1)
        filler = disk / "filler"
        with filler.open("wb") as file:
            file.write(bytes(shutil.disk_usage(disk).free - (2 << 20)))
        (run.made / "gen-1" / "MANIFEST").write_text('{"files": {}}')  # no size that tells beforehand
        told = run.story().count("Checkpoint failed")
        run.asked("bchkpnt")
        run.wait(lambda: run.story().count("Checkpoint failed") > told)
        run.goes_on()
        filler.unlink()
        run.made.rename(disk / "away")
        run.asked("bchkpnt")
        run.wait(lambda: run.story().count("Checkpoint failed") > told + 1)
        run.goes_on()
        (disk / "away").rename(run.made)
        for _ in range(5):
            known = run.asked("bchkpnt")
            run.wait(partial(lambda known: _kill_criu(run) or run.newest() > known, known))
            run.goes_on()
        run.check(tmp_path)


def _kill_criu(run: Run) -> bool:
    """Kill the CRIU that dumps this job, if it runs now."""
    words = ["pgrep", "-f", f"criu dump .*{run.made}/"]
    found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split()
    for pid in found:
        os.kill(int(pid), signal.SIGKILL)
    return bool(found)
