"""Checkpoints of a job on several hosts, each of which has a disk of its own: parts in a shared folder, and hosts lost."""

from __future__ import annotations

import getpass
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.namespace import Apart, why_not
from tests.support.wait import wait_until

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())

HEAT = Path(__file__).parents[3] / "examples" / "heat" / "heat.py"
HOSTS = ("host1", "host2", "host3")
SIZE, STEPS = 64, 150
RESTING = """\
import os, runpy, sys, time
go, rest = sys.argv[1], time.sleep
time.sleep = lambda seconds: None if os.path.exists(go) else rest(seconds)
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program that rests between its steps until a file is there, so that its end does not have to be waited for."""


class Plate:
    """Three hosts, each with a folder of its own at the path of the checkpoints; a job of heat.py on two of them."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self.folder, self.own, self.shared, self.cluster = folder, folder / "own", folder / "shared", cluster
        self.reference, self.result, self.out = folder / "reference.f64", folder / "result.f64", folder / "out"
        words = [str(self.reference), "--size", str(SIZE), "--steps", str(STEPS), "--reference"]
        subprocess.run([sys.executable, str(HEAT), *words], check=True)
        for path in (self.own, self.shared, *(folder / host for host in HOSTS)):
            path.mkdir()
        self.apart = {host: Apart(cluster, host) for host in HOSTS}
        for host, its in self.apart.items():
            its.again({})
            its.replace(str(self.own), folder / host)
        words = ["-a mpi -n 2 -R span[ptile=1]", f'-k "{self.own} method=app stage={self.shared}"', f"-o {self.out}"]
        self.go, resting = folder / "go", folder / "resting.py"
        resting.write_text(RESTING)
        program = f"{sys.executable} {resting} {self.go} {HEAT} {self.result} --size {SIZE} --steps {STEPS} --pause 0.4"
        self.job = self.begun = cluster.submit(f"{' '.join(words)} {program}")
        self.wait(lambda: self.lines(" plate, steps ") == 1)

    def lines(self, text: str) -> int:
        return self.out.read_text().count(text) if self.out.exists() else 0

    def story(self) -> str:
        return self.cluster.run(f"bhist -l {self.job}", ok=False).stdout

    def told(self, text: str) -> bool:
        """LSF breaks its lines anywhere."""
        return "".join(text.split()) in "".join(self.story().split())

    def wait(self, condition: Callable[[], object]) -> None:
        wait_until(condition, 120, lambda: f"{self.story()}\n{self.out.exists() and self.out.read_text()}\n{self.cluster.logs()}")

    def hosts(self) -> list[str]:
        return self.cluster.run(f"bjobs -noheader -o exec_host {self.job}").stdout.strip().split(":")

    def checkpoint(self, words: str = "") -> None:
        self.cluster.run(f"bchkpnt {words} {self.job}")

    def is_staged(self, number: int) -> bool:
        return self.told(f"Checkpoint generation {number} is staged (")

    def copies(self) -> dict[str, list[str]]:
        """The parts of each copy in the shared folder."""
        there = self.shared / getpass.getuser() / str(self.job)
        return {path.name: sorted(part.name for part in path.iterdir()) for path in there.iterdir() if path.name[0] != "."}

    def goes_on(self, starts: int, generation: int) -> None:
        self.wait(lambda: self.lines(" plate, steps ") == starts)
        assert self.lines(f"restarted from generation {generation} at step") == 1, self.out.read_text()

    def restart(self, options: str) -> None:
        """brestart; ``job`` is the new one."""
        done = self.cluster.run(f"brestart {options} {self.own} {self.begun}")
        self.job = int(done.stdout.split("<")[1].split(">")[0])

    def check(self) -> None:
        """It ends well, with the numbers of the reference."""
        self.go.touch()
        self.cluster.wait_for(self.job, "DONE", timeout=240)
        assert self.result.read_bytes() == self.reference.read_bytes()


@pytest.fixture
def plate(tmp_path: Path) -> Iterator[Plate]:
    with Cluster(tmp_path / "cluster", hosts=3, slots=1) as cluster:
        yield Plate(tmp_path, cluster)


WHOLE = ["MANIFEST", "part-0", "part-1"]


def test_a_host_that_is_lost_before_its_part_is_copied(plate: Plate) -> None:
    """The generation does not count: the job goes on from the one before, elsewhere, and no bit is another."""
    plate.checkpoint()
    plate.wait(lambda: plate.is_staged(1))
    assert plate.copies() == {"gen-1": WHOLE}, plate.story()
    second = plate.hosts()[1]
    (plate.folder / "elsewhere").mkdir()
    plate.apart[second].replace(str(plate.shared), plate.folder / "elsewhere")
    plate.checkpoint()
    plate.wait(lambda: plate.told("Checkpoint succeeded (generation 2"))
    plate.wait(lambda: any("part-0" in parts for name, parts in plate.copies().items() if name.startswith("gen-2.")))
    plate.cluster.kill_host(second)
    shutil.rmtree(plate.folder / second)
    plate.goes_on(2, 1)
    assert second not in plate.hosts()
    plate.checkpoint()
    plate.wait(lambda: plate.is_staged(2))
    assert plate.copies() == {"gen-1": WHOLE, "gen-2": WHOLE}, "nothing of the previous attempt is left"
    plate.check()


def test_the_end_waits_for_all_parts_and_other_hosts_go_on_from_them(plate: Plate) -> None:
    plate.checkpoint("-k")
    plate.cluster.wait_for(plate.job, "EXIT", timeout=120)
    assert plate.copies() == {"gen-1": WHOLE}, plate.story()
    for host in HOSTS:
        for path in (plate.folder / host).iterdir():
            shutil.rmtree(path)
    plate.restart("-n 1 -R span[ptile=1]")
    plate.cluster.wait_for(plate.job, "EXIT", timeout=120)
    assert plate.told("generation 1 is of 2 hosts with 1 1 slots, and the job has one host: a restart needs the same"), (
        plate.story()
    )
    plate.restart("")
    plate.goes_on(2, 1)
    plate.cluster.run(f"bmig {plate.job}")
    plate.goes_on(3, 2)
    plate.check()
