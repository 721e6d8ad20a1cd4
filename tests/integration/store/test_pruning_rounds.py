"""The master's rounds: what the site says is old goes, once lsb.acct has it and those who just found it are answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Caller, Select
from lavad.core.site.conf import Conf
from lavad.engine import Engine
from lavad.lsb import position
from lavad.services.lookups import Lookups
from lavad.services.pruning import DAY, Pruning
from lavad.store.asked import Find
from lavad.store.read import Reader
from lavad.store.writer import Store
from proto.daemon.workers import Workers
from tests.integration.store.test_prune import finished
from tests.support.stores.stores import commit, store, store_url  # noqa: F401

ANN = Caller(user="ann", uid=1000, host="h1")
NOW = 1000 * DAY


class Site:
    """Twelve jobs, one of which ended on each of the last twelve days."""

    def __init__(self, opened: Store, url: str, shared: str = "", **params: object) -> None:
        cluster = Cluster()
        conf = replace(cluster.conf, cluster="c", params=replace(Conf().params, clean_period=3600, **params))
        commit(opened, cluster, [ev.Configured(at=NOW - 20 * DAY, conf=conf)])
        for days in range(12, 0, -1):
            commit(opened, cluster, finished(cluster, NOW - (days - 0.5) * DAY), texts=[(cluster.next_job, JobText(command="x"))])
        self.reader = Reader.open(url)
        self.engine = Engine(cluster, opened, lambda: NOW, {})
        self.lookups = Lookups(cluster, self.reader, Workers("reads"), lambda: NOW)
        self.pruning = Pruning(self.engine, opened, self.reader, self.lookups, 0, shared, lambda: NOW)

    async def round(self) -> list[int]:
        """The jobs that are left after a round."""
        await self.pruning.tried_round()
        return self.left()

    def left(self) -> list[int]:
        return [job.key for job in self.reader.finished_jobs(Find())]


def test_what_is_older_than_history_days_goes(store: Store, store_url: str) -> None:  # noqa: F811
    site = Site(store, store_url, lava_history_days=5.0)
    assert asyncio.run(site.round()) == [8, 9, 10, 11, 12]
    assert site.reader.kept_since() == NOW - 5 * DAY
    assert list(site.reader.texts(range(1, 13))) == [8, 9, 10, 11, 12]


def test_everything_stays_where_the_site_wants_it(store: Store, store_url: str) -> None:  # noqa: F811
    site = Site(store, store_url, lava_history_days=0.0)
    assert len(asyncio.run(site.round())) == 12
    assert site.reader.kept_since() == 0.0


def test_a_store_that_is_younger_than_history_days_has_all(store: Store, store_url: str) -> None:  # noqa: F811
    site = Site(store, store_url, lava_history_days=30.0)
    assert len(asyncio.run(site.round())) == 12
    assert site.reader.kept_since() == 0.0


def test_more_than_history_jobs_go_but_not_within_clean_period(store: Store, store_url: str) -> None:  # noqa: F811
    site = Site(store, store_url, lava_history_days=0.0, lava_history_jobs=3)
    assert asyncio.run(site.round()) == [9, 10, 11, 12]


def test_nothing_goes_before_it_is_in_the_file(store: Store, store_url: str, tmp_path: Path) -> None:  # noqa: F811
    site = Site(store, store_url, str(tmp_path), lava_history_days=5.0)
    assert len(asyncio.run(site.round())) == 12, "no file was ever written"
    folder = position.folder_of(str(tmp_path), "c")
    folder.mkdir(parents=True)
    written = [seq for seq, event in site.reader.events_after(0, 999) if isinstance(event, ev.JobFinished)]
    position.save(folder, written[2], [])
    assert asyncio.run(site.round()) == [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    position.save(folder, site.engine.cluster.version, [])
    assert asyncio.run(site.round()) == [8, 9, 10, 11, 12]


def test_who_has_found_an_old_job_is_answered_before_it_goes(store: Store, store_url: str) -> None:  # noqa: F811
    async def story() -> None:
        site = Site(store, store_url, lava_history_days=5.0)
        found, decided = asyncio.Event(), asyncio.Event()

        async def requeue() -> list[int]:
            jobs = (await site.lookups.finished(Select(ids=["1", "12"]), ANN)).jobs
            found.set()
            await decided.wait()
            return [job.key for job in jobs]

        asking = asyncio.ensure_future(site.lookups.held(requeue()))
        await found.wait()
        forgetting = asyncio.ensure_future(site.lookups.forget(NOW - 5 * DAY))
        await asyncio.sleep(0)
        rounds = asyncio.ensure_future(site.round())
        later = (await site.lookups.finished(Select(ids=["1", "12"]), ANN)).jobs
        assert [job.key for job in later] == [12], "from now on nobody finds it"
        assert len(site.left()) == 12
        asking.cancel()  # the caller goes away, and its request is decided all the same
        await asyncio.gather(asking, return_exceptions=True)
        assert not forgetting.done()
        assert not rounds.done()
        decided.set()
        assert await rounds == [8, 9, 10, 11, 12]

    asyncio.run(story())
