"""A site is upgraded, daemon by daemon, while 20 jobs run; and one agent is rolled back. No job is lost, none runs twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.mixed import MixedSite, older_tree
from tests.support.live.work import Work
from tests.support.processes import is_alive
from tests.support.wait import wait_until

COUNT = 20


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MixedSite]:
    tmp_path.chmod(0o755)
    older = older_tree(tmp_path / "older")
    with MixedSite(tmp_path / "site", older) as site:
        site.master(older)
        for host in site.hosts:
            site.agent(host, older)
        site.wait_ok()
        yield site


class Upgrade:
    """The jobs of the test, and what has to be true of them after each step."""

    def __init__(self, site: MixedSite, folder: Path) -> None:
        self.site = site
        self.work = Work(site, folder)
        self.names = [f"job{number}" for number in range(COUNT)]
        self.jobs = [self.work.submit(name) for name in self.names]
        self.gang = self.work.submit("gang", "-n 2 -R span[ptile=1]")
        self.work.began("gang")
        for name in self.names:
            self.work.began(name)

    def check(self) -> None:
        """Every job that was not told to end runs as the process that began it."""
        self.site.wait_ok()
        self.site.wait_for("RUN", *self.jobs)
        assert self.site.states(self.gang) == ["RUN"]
        for name in (*self.names, "gang"):
            (pid,) = self.work.pids(name)
            assert is_alive(pid)

    def finish(self, count: int) -> None:
        """Some of the jobs end."""
        for name in self.names[:count]:
            self.work.end(name)
        self.site.wait_for("DONE", *self.jobs[:count])
        assert all(len(self.work.pids(name)) == 1 for name in self.names[:count])
        self.names, self.jobs = self.names[count:], self.jobs[count:]

    def finish_gang(self) -> None:
        """The job over both hosts ends."""
        self.work.end("gang")
        self.site.wait_for("DONE", self.gang)
        assert len(self.work.pids("gang")) == 1

    def runs_on_both(self) -> None:
        """A job that has a task on each of its hosts."""
        marks = self.work.folder / "marks"
        script = self.work.folder / "mark.sh"
        script.write_text(f"echo $LSB_JOBID >>{marks}\n")
        job = self.site.submit(f"-o /dev/null -n 2 -R span[ptile=1] blaunch sh {script}")
        self.site.wait_for("DONE", job)
        assert marks.read_text().split().count(str(job)) == 2

    def runs_new(self, options: str = "", through: str = "") -> None:
        """A job that is submitted now runs and ends."""
        job = self.site.submit(f"-o /dev/null {options} true", through=through)
        self.site.wait_for("DONE", job)


def test_an_upgrade_under_running_jobs(site: MixedSite, tmp_path: Path) -> None:
    upgrade = Upgrade(site, tmp_path)

    site.master(site.newer)  # the masters first: new lavad, older agents and commands
    upgrade.check()
    upgrade.runs_new("-n 2 -R span[ptile=1]")
    upgrade.runs_new(through="host1")
    upgrade.finish(4)

    for host in site.hosts:  # then the agents: their starters, and the jobs, are still the older ones
        site.agent(host, site.newer)
    upgrade.check()
    upgrade.runs_on_both()
    upgrade.runs_new(through="host1")
    site.commands = site.newer
    upgrade.runs_new()
    upgrade.runs_new(through="host1")
    upgrade.finish(6)

    site.agent("host2", site.older)  # one goes back
    upgrade.check()
    upgrade.runs_new("-m host2")
    site.agent("host2", site.newer)
    upgrade.check()
    upgrade.finish(len(upgrade.jobs))
    upgrade.finish_gang()

    # and at last the starters, when nothing runs on the host; no job spans hosts whose starters differ
    renew_starter(site, "host1")
    waits = site.submit("-o /dev/null -n 2 -R span[ptile=1] true")
    upgrade.runs_new("-m host1")
    upgrade.runs_new("-m host2")
    assert site.states(waits) == ["PEND"]
    renew_starter(site, "host2")
    site.wait_for("DONE", waits)
    upgrade.runs_on_both()


def renew_starter(site: MixedSite, host: str) -> None:
    """End a starter; the agent starts its own, and tells the master."""

    def greetings() -> int:
        logs = (site.folder / "log").glob("lavad.log*")  # each version has its own name for it in LSF_LOGDIR
        return sum(log.read_text().count(f"host {host}: connected") for log in logs)

    before = greetings()
    site.stop_starter(host)
    wait_until(lambda: greetings() > before, 30, "a greeting with another starter")
    site.wait_ok()
