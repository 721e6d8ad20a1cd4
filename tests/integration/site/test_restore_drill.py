"""A backup under a running master, work that goes on, the loss of the store, a restore, and what comes of every job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.work import Work
from tests.support.processes import is_alive
from tests.support.wait import wait_until


class Drill(Work):
    """The jobs of the drill: those that the backup knows, and what happens after it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster, folder)
        self.cluster = cluster
        self.here = ("--dir", str(folder / "cluster"))
        self.file = str(folder / "backup")
        cluster.run("badmin qinact short")
        self.stays = self.submit("stays")
        self.gang = self.submit("gang", "-n 2 -R 'span[ptile=1]'")
        self.known = self.submit("known", code=3)
        self.away = self.submit("away", code=5)
        self.once = self.submit("once", "-q short")
        self.again = self.submit("again", "-q short -r")
        self.short = self.submit("short", "-q short")
        for name in ("stays", "gang", "known", "away"):
            self.began(name)
        cluster.wait_for(self.gang, "RUN")

    def back_up(self) -> None:
        done = self.cluster.lava("db", "backup", *self.here, self.file)
        assert done.returncode == 0, done.stderr

    def go_on(self) -> None:
        """What the backup does not know."""
        self.cluster.run("badmin qact short")
        self.end("known")
        self.cluster.wait_for(self.known, "EXIT")
        for name in ("once", "again", "short"):
            self.began(name)
        self.end("short")
        self.cluster.wait_for(self.short, "DONE")
        self.late = self.submit("late")
        self.began("late")

    def restore(self) -> None:
        """Lose the store, and restore it."""
        refused = self.cluster.lava("db", "restore", *self.here, "--replace", self.file)
        assert refused.returncode == 1, refused.stdout
        assert "lavad" in refused.stderr or "master" in refused.stderr
        self.cluster.kill("lavad")
        self.end("away")
        wait_until(lambda: not is_alive(self.pids("away")[0]), 20, "a job to end while there is no master")

        def restored() -> str:
            """A killed master's lease has to expire first."""
            return self.cluster.lava("db", "restore", *self.here, "--replace", self.file).stdout

        assert "badmin qact" in wait_until(restored, 60, "the store to be restored")
        self.cluster.up()
        wait_until(self.heard, 60, "both hosts to come back")

    def heard(self) -> bool:
        shown = self.cluster.run("bhosts -noheader -o 'host_name status'").stdout
        return shown.split() == ["host1", "ok", "host2", "ok"]

    def ended(self, name: str) -> None:
        wait_until(lambda: not is_alive(self.pids(name)[0]), 30, f"{name} to be ended")


@pytest.mark.parametrize("options", [(), ("--database", "postgres")], ids=["sqlite", "postgres"])
def test_a_store_is_lost_and_restored(tmp_path: Path, options: tuple[str, ...]) -> None:
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", 2, 6, options) as cluster:
        drill = Drill(cluster, tmp_path)
        drill.back_up()
        drill.go_on()
        drill.restore()
        _check_what_was_known(drill)
        _check_what_began_later(drill)
        _check_what_comes_then(drill)
        # an agent that starts again does not tell the same ends once more
        os.kill(cluster.pid("agent-host1"), 9)
        cluster.up()
        wait_until(drill.heard, 60, "host1 to come back")
        assert cluster.states(drill.known) == ["EXIT"]


def _check_what_was_known(drill: Drill) -> None:
    """Jobs go on under their attempts; ends that the backup lacks come from the hosts."""
    cluster = drill.cluster
    cluster.wait_for(drill.known, "EXIT")
    cluster.wait_for(drill.away, "EXIT")
    codes = [cluster.run(f"bjobs -a -noheader -o exit_code {job}").stdout.strip() for job in (drill.known, drill.away)]
    assert codes == ["3", "5"]
    assert cluster.states(drill.stays) == cluster.states(drill.gang) == ["RUN"]
    assert is_alive(drill.pids("stays")[0])


def _check_what_began_later(drill: Drill) -> None:
    """It is ended, and told where its job is still known."""
    cluster = drill.cluster
    for name in ("late", "once", "again"):
        drill.ended(name)
    assert "not found" in cluster.run(f"bjobs {drill.late}", ok=False).stderr
    # hosts that the backup knows are shown as ok for a while before they are here again
    for job in (drill.once, drill.short):
        cluster.wait_for(job, "PSUSP")
    assert cluster.states(drill.again) == ["PEND"]
    assert "and was ended there" in " ".join(cluster.run(f"bhist -w -l {drill.once}").stdout.split())


def _check_what_comes_then(drill: Drill) -> None:
    """Nothing starts before the administrator says so, no id is given twice, and every job ends once."""
    cluster = drill.cluster
    new = cluster.submit("-o /dev/null true")
    assert new > drill.late
    assert cluster.states(new) == ["PEND"]
    cluster.run("badmin qact normal short")
    cluster.wait_for(new, "DONE")
    drill.began("again", 2)
    cluster.run(f"bresume {drill.once}")
    drill.began("once", 2)
    for name in ("stays", "gang", "once", "again"):
        drill.end(name)
    for job in (drill.stays, drill.gang, drill.once, drill.again):
        cluster.wait_for(job, "DONE")
    assert [len(drill.pids(name)) for name in ("stays", "known", "away", "short")] == [1, 1, 1, 1]
    checked = cluster.lava("db", "check", *drill.here)
    assert checked.returncode == 0, checked.stdout
