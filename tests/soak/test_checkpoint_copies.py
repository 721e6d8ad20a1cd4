"""Hosts with folders of their own and none that they share: copies of checkpoints on other hosts, of which some are lost too."""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from agent.starter.part import generations
from cli.local.daemons import children
from tests.support.live.cluster import Cluster
from tests.support.live.namespace import Apart, why_not
from tests.support.wait import wait_until

HOSTS = ("host1", "host2", "host3")
KILLS = 12
PROGRAM = """\
n=$(ls $LSB_CHKPNT_DIR | grep -v tmp | sed -n 's/^gen-//p' | sort -n | tail -1)
echo "from ${n:-0}" >> $OUT
trap 'asked=1' USR1
echo ready >> $OUT
while :; do
    sleep 0.05
    [ -n "$asked" ] || continue
    asked=
    n=$((${n:-0} + 1))
    mkdir $LSB_CHKPNT_DIR/gen-$n.tmp
    head -c 200000 /dev/urandom > $LSB_CHKPNT_DIR/gen-$n.tmp/state
    printf '{"files": {"state": {"size": 200000, "sha256": "%s"}}}' \
        $(sha256sum < $LSB_CHKPNT_DIR/gen-$n.tmp/state | cut -d' ' -f1) > $LSB_CHKPNT_DIR/gen-$n.tmp/MANIFEST
    mv $LSB_CHKPNT_DIR/gen-$n.tmp $LSB_CHKPNT_DIR/gen-$n
done
"""


class Site:
    """Three hosts, each with a folder of its own at the path of the checkpoints, and one for copies."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.own, self.out, self.copies = folder, folder / "own", folder / "out", folder / "copies"
        self.cluster = Cluster(folder / "cluster", hosts=3, slots=2)
        for path in (self.own, *(folder / host for host in HOSTS)):
            path.mkdir()
        with self.cluster, (self.cluster.folder.conf / "lsf.conf").open("a") as file:
            file.write(f"LAVA_CHKPNT_COPY_DIR={self.copies}\nLAVA_CHKPNT_COPY_WAIT=5\n")
        self.job = 0

    def begin(self, apart: bool = True) -> None:
        for host in HOSTS if apart else ():
            its = Apart(self.cluster, host)
            its.again({})
            its.replace(str(self.own), self.folder / host)
        (self.folder / "program").write_text(PROGRAM)
        options = f'-k "{self.own} method=app stage" -env "all, OUT={self.out}" -o /dev/null'
        self.job = self.cluster.submit(f"{options} exec sh {self.folder}/program")
        self.starts(1)

    def lines(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []

    def froms(self) -> list[int]:
        return [int(line.split()[1]) for line in self.lines() if line.startswith("from ")]

    def starts(self, number: int) -> int:
        """Wait for the how manieth start; the generation that it goes on from."""
        self.wait(lambda: self.lines().count("ready") >= number)
        return self.froms()[number - 1]

    def story(self) -> str:
        return " ".join(self.cluster.run(f"bhist -l {self.job}", ok=False).stdout.split())

    def told(self, text: str) -> bool:
        """LSF breaks its lines anywhere."""
        return text.replace(" ", "") in self.story().replace(" ", "")

    def wait(self, condition: Callable[[], object]) -> None:
        wait_until(condition, 90, lambda: f"{self.story()}\n{self.cluster.logs()}")

    def host(self) -> str:
        return self.cluster.run(f"bjobs -noheader -o exec_host {self.job}").stdout.strip()

    def holder(self) -> str:
        """The host with the newest copy of the job."""
        found = {int(path.name[4:]): path for path in self.copies.glob("host*/*/*/gen-*") if path.name[4:].isdigit()}
        return found[max(found)].parts[len(self.copies.parts)]

    def checkpoint(self, number: int) -> None:
        self.cluster.run(f"bchkpnt {self.job}")
        self.wait(lambda: self.told(f"Checkpoint generation {number} is staged on host"))

    def lose(self, host: str) -> None:
        """All processes of a host, and its disk."""
        self.cluster.kill_host(host)
        shutil.rmtree(self.folder / host)
        shutil.rmtree(self.copies / host)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    found = Site(tmp_path)
    with found.cluster:
        found.begin()
        yield found


apart = pytest.mark.skipif(bool(why_not()), reason=why_not())


@apart
def test_a_job_goes_on_where_its_host_is_lost(site: Site) -> None:
    for number in (1, 2, 3):
        site.checkpoint(number)
    holder, host = site.holder(), site.host()
    assert holder != host
    [user] = (site.copies / holder).glob("[!.]*")
    assert user.name == getpass.getuser()
    [copies] = user.iterdir()
    assert sorted(path.name for path in copies.iterdir()) == ["gen-2", "gen-3"]
    site.lose(host)
    assert site.starts(2) == 3
    assert site.host() != host
    assert not list(site.own.iterdir()), "nothing is written where hosts would share it"
    site.cluster.run(f"bchkpnt -k {site.job}")
    site.cluster.wait_for(site.job, "EXIT", timeout=60)
    for path in site.folder.glob("host*/*"):
        shutil.rmtree(path)
    site.job = int(site.cluster.run(f"OUT={site.out} brestart {site.own} {site.job}").stdout.split("<")[1].split(">")[0])
    assert site.starts(3) == 4, "only the copy is left"
    site.cluster.run(f"bkill {site.job}")


@apart
def test_a_holder_that_is_lost_is_followed_by_another(site: Site) -> None:
    site.checkpoint(1)
    holder, host = site.holder(), site.host()
    site.lose(holder)
    [other] = {*HOSTS} - {holder, host}
    site.wait(lambda: site.told(f"Checkpoint generation 1 is staged on host <{other}>"))
    site.lose(host)
    assert site.starts(2) == 1
    assert site.host() == other


@apart
def test_with_host_and_holder_lost_it_begins_anew_and_says_why(site: Site) -> None:
    site.checkpoint(1)
    holder, host = site.holder(), site.host()
    for lost in (holder, host):
        site.lose(lost)
    assert site.starts(2) == 0
    line = f"Checkpoint generation 1: its copy is on {holder}, which is down; the job goes on from the beginning"
    site.wait(lambda: site.told(line))


def test_daemons_killed_while_copies_are_made(tmp_path: Path) -> None:
    """Whatever is killed, the newest generation is with another host in the end, whole, and nothing unfinished is left."""
    chance, site = random.Random(5), Site(tmp_path)
    with site.cluster as cluster:
        site.begin(apart=False)
        for number in range(1, KILLS + 1):
            cluster.run(f"bchkpnt {site.job}")
            wait_until(lambda: chance.random() < 0.01, 60, "some moment")
            what = chance.choice(["lavad", *(f"{kind}-{host}" for kind in ("agent", "holds") for host in HOSTS)])
            if what.startswith("holds-"):
                _kill_holding(cluster, what.removeprefix("holds-"))
            else:
                cluster.kill(what)
                cluster.up()
            site.wait(partial(site.told, f"Checkpoint generation {number} is staged on host"))
        site.wait(lambda: not list(site.copies.glob("host*/*/*/*.tmp")))
        newest = list(site.copies.glob(f"host*/*/*/gen-{KILLS}"))
        assert newest
        assert [generations.check(str(path))[1] for path in newest] == [""] * len(newest)
        assert site.froms() == [0], "the job did not notice"


def _kill_holding(cluster: Cluster, host: str) -> None:
    for pid in children([cluster.pid(f"agent-{host}")]):
        with contextlib.suppress(OSError):
            if b"\0hold\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
