"""Hosts that lose jobs are closed with the reason, and opened when they are well again; an administrator has the last word."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.report.report import decide_report
from lavad.core.job.job import End
from lavad.core.lang.states import JobState, TermReason
from lavad.core.site.host import Host
from lavad.services.host_watch import HostWatch
from tests.support.worlds.reports import report_of
from tests.support.worlds.watched import Watched, told_to


class HostsWatched(Watched):
    """With a watch on the hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.bench.configure(params=replace(self.bench.cluster.conf.params, lava_host_refusals=2, lava_host_retry=100))
        self.watch = self.restarted()
        self.engine.listen(self._note)

    def restarted(self) -> HostWatch:
        """The watch of a new master."""
        self.watch = HostWatch(self.engine, lambda: self.bench.now)
        self.engine.listen(self.watch.committed)
        return self.watch

    def _note(self, committed: Any) -> None:
        for event in committed.events:
            if isinstance(event, ev.HostSwitched):
                self.said.append(f"{event.host} {'closed' if event.closed else 'opened'} by {event.by}: {event.comment}")

    async def happens(self, *events: ev.Event) -> None:
        await self.engine.ask(lambda cluster, now: Decided(events=list(events)))

    async def report(self, what: str, key: int, host: str, *values: Any) -> None:
        report = report_of(what, key, self.bench.uid(key), host, *values)

        def decide(cluster: Cluster, now: float) -> Decided:
            return Decided(events=decide_report(cluster, report, now))

        await self.engine.ask(decide)

    async def placed(self, host: str = "h1") -> int:
        """A job that was sent to this host."""
        key = self.bench.submit(hosts=(host,))
        assert self.bench.step() == {key: {host: 1}}
        return key

    async def fails(self, code: str = "lookup", host: str = "h1") -> int:
        """A job that this host refuses."""
        key = await self.placed(host)
        await self.report("refused", key, host, code, "no directory")
        return key

    async def ends(self, status: int, host: str = "h1") -> None:
        """A job that runs on this host and ends."""
        key = await self.placed(host)
        await self.report("started", key, host, 77, 1.0, "/")
        await self.report("ended", key, host, End(status=status, at=self.bench.now), True)

    def drop(self, key: int) -> None:
        """A job that waits is gone."""
        self.bench.apply(ev.JobFinished(at=self.bench.now, key=key, state=JobState.EXIT))

    def host(self, name: str = "h1") -> Host:
        return self.bench.cluster.hosts.rows[name]


told = told_to(HostsWatched)


@told
async def test_a_host_that_loses_jobs_is_closed_with_the_reason(w: HostsWatched) -> None:
    await w.fails()
    await w.watch.turn()
    assert w.said == []
    key = await w.fails()
    await w.watch.turn()
    assert w.said == ["h1 closed by lava: 2 jobs in a row could not start: no directory"]
    assert (w.host().closed, w.host().closed_by, w.host().closed_for) == (True, "lava", "starts")
    assert key in w.bench.cluster.jobs.rows
    w.bench.now = w.bench.job(key).not_before
    assert w.bench.step() == {}


@told
async def test_jobs_that_ran_elsewhere_prove_it_and_a_users_own_faults_do_not(w: HostsWatched) -> None:
    keys = []
    for _ in range(2):
        keys.append(w.bench.submit())
        assert w.bench.step() == {keys[-1]: {"h1": 1}}
        await w.report("refused", keys[-1], "h1", "cwd", "no /home")
    await w.watch.turn()
    assert w.said == []
    w.bench.now = w.bench.job(keys[0]).not_before
    for key, [host] in w.bench.step().items():
        assert host != "h1"
        await w.report("started", key, host, 77, 1.0, "/")
    await w.watch.turn()
    assert w.said == ["h1 closed by lava: 2 jobs in a row could not start: no /home"]


@told
async def test_it_is_tried_again_later_each_time_until_a_job_starts(w: HostsWatched) -> None:
    w.drop(await w.fails())
    w.drop(await w.fails())
    await w.watch.turn()
    for pause in (100, 200, 400):
        w.bench.now += pause - 1
        await w.watch.turn()
        assert w.host().closed
        w.bench.now += 1
        await w.watch.turn()
        assert w.said[-1] == f"h1 opened by lava: for a trial, after {pause} s"
        w.drop(await w.fails())
        await w.watch.turn()
        assert w.said[-1].startswith("h1 closed by lava: 1 jobs in a row")
    w.bench.now += 800
    await w.watch.turn()
    await w.ends(0)
    await w.fails()
    await w.watch.turn()
    assert not w.host().closed


@told
async def test_an_administrator_has_the_last_word(w: HostsWatched) -> None:
    await w.fails()
    await w.fails()
    await w.watch.turn()
    await w.happens(ev.HostSwitched(at=w.bench.now, host="h1", closed=False, by="boss"))
    await w.watch.turn()
    assert not w.host().closed
    await w.fails()
    await w.watch.turn()
    assert not w.host().closed
    await w.fails()
    await w.watch.turn()
    assert w.host().closed
    await w.happens(ev.HostSwitched(at=w.bench.now, host="h1", closed=True, by="boss", comment="new disk"))
    w.bench.now += 10_000
    await w.watch.turn()
    assert (w.host().closed, w.host().comment) == (True, "new disk")


@told
async def test_health_closes_and_opens(w: HostsWatched) -> None:
    w.watch.heard("h1", "")
    w.watch.heard("h2", "disk full")
    await w.watch.turn()
    assert w.said == ["h2 closed by lava: disk full"]
    w.watch.heard("h2", "disk fuller")
    await w.watch.turn()
    w.watch.heard("h2", "")
    await w.watch.turn()
    assert w.said[1:] == ["h2 opened by lava: its health check succeeds again"]


@told
async def test_what_a_full_store_refuses_is_done_when_there_is_room(w: HostsWatched) -> None:
    w.watch.heard("h1", "users cannot be looked up")
    w.disk(full=True)
    await w.watch.turn()
    assert w.said == []
    w.disk(full=False)
    await w.watch.turn()
    assert w.said == ["h1 closed by lava: users cannot be looked up"]
    w.watch.heard("h1", "")
    w.disk(full=True)
    await w.watch.turn()
    w.disk(full=False)
    await w.watch.turn()
    assert w.said[1:] == ["h1 opened by lava: its health check succeeds again"]


@told
async def test_what_a_host_finds_out_after_it_was_closed_opens_it(w: HostsWatched) -> None:
    await w.fails()
    await w.fails()
    await w.watch.turn()
    w.watch.heard("h1", "")
    await w.watch.turn()
    assert w.host().closed_for == "starts"
    w.watch.heard("h1", "users cannot be looked up")
    await w.watch.turn()
    w.watch.heard("h1", "")
    await w.watch.turn()
    assert w.said[-1] == "h1 opened by lava: its health check succeeds again"


@told
async def test_a_host_opened_against_its_health_stays_open_until_it_was_well(w: HostsWatched) -> None:
    w.watch.heard("h1", "disk full")
    await w.watch.turn()
    await w.happens(ev.HostSwitched(at=w.bench.now, host="h1", closed=False, by="boss"))
    for _ in range(3):
        await w.watch.turn()
    assert not w.host().closed
    w.watch.heard("h1", "")
    await w.watch.turn()
    w.watch.heard("h1", "disk full")
    await w.watch.turn()
    assert w.host().closed


@told
async def test_a_new_master_goes_on_where_the_last_one_was(w: HostsWatched) -> None:
    w.watch.heard("h2", "disk full")
    await w.fails()
    await w.fails()
    await w.watch.turn()
    assert w.host("h1").closed
    assert w.host("h2").closed
    again = w.restarted()
    await again.turn()
    again.heard("h2", "")
    w.bench.now += 101
    await again.turn()
    assert not w.host("h1").closed
    assert not w.host("h2").closed


@told
async def test_the_exit_rate_of_lsf_closes_for_good(w: HostsWatched) -> None:
    w.bench.configure(hosts=(HostConfig("h1", exit_rate=2.0), HostConfig("h2"), HostConfig("h3")))
    for _ in range(2):
        await w.ends(256)
        await w.ends(0)
        await w.ends(256, "h2")
    await w.watch.turn()
    assert w.said == []
    await w.ends(256)
    await w.ends(256, "h2")
    await w.watch.turn()
    assert w.said == ["h1 closed by lava: eadmin: JOB EXIT THRESHOLD EXCEEDED"]
    w.bench.now += 100_000
    await w.watch.turn()
    assert w.host().closed


@pytest.mark.parametrize(("types", "closes"), [(("JOBEXIT",), True), (("JOBEXIT_NONLSF",), False)])
def test_what_ends_by_a_limit_counts_where_the_site_says_so(types: tuple[str, ...], closes: bool) -> None:
    async def story(w: HostsWatched) -> None:
        w.bench.configure(params=replace(w.bench.cluster.conf.params, global_exit_rate=0, exit_rate_type=types))
        key = await w.placed()
        await w.report("started", key, "h1", 77, 1.0, "/")
        end = End(status=9, at=w.bench.now, limit=TermReason.TERM_RUNLIMIT)
        await w.report("ended", key, "h1", end, True)
        await w.watch.turn()
        assert w.host().closed is closes

    told(story)()


@pytest.mark.parametrize(
    ("types", "code", "closes"),
    [(("JOBINIT",), "cwd", True), (("JOBINIT",), "pre_abort", False), (("JOBEXIT", "JOBEXIT_NONLSF"), "cwd", False)],
)
def test_jobs_that_could_not_start_count_where_the_site_says_so(types: tuple[str, ...], code: str, closes: bool) -> None:
    async def story(w: HostsWatched) -> None:
        w.bench.configure(params=replace(w.bench.cluster.conf.params, global_exit_rate=0, exit_rate_type=types))
        await w.report("refused", await w.placed(), "h1", code, "no /home")
        await w.watch.turn()
        assert w.host().closed is closes

    told(story)()
