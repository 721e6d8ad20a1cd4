"""Limits of application profiles, and the hosts that limits are given for, when a job is changed by bmod."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits, TaskLimit
from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod
from tests.unit.lavad.core.decide.modify.test_running import running

SHORT = ApplicationConfig(
    name="short", defaults=Limits(run=120), limits=Limits(run=600, processes=20), tasklimit=TaskLimit(1, 1, 2)
)
LONG = ApplicationConfig(name="long", defaults=Limits(run=6000), default_host_spec="h2")
TOO_LONG = "RUNLIMIT: Cannot exceed the application profile's limit"


def limits(bench: Bench, key: int) -> tuple[int | None, int | None]:
    found = bench.cluster.spec_of(key).limits
    return found.run, found.processes


@pytest.fixture
def site(bench: Bench) -> Bench:
    bench.configure(apps=(SHORT, LONG))
    return bench


@pytest.mark.parametrize(("options", "why"), [({"W": "11"}, TOO_LONG), ({"n": "3"}, "Too many processors requested")])
def test_a_job_that_waits_stays_within_its_profile(site: Bench, options: dict[str, Any], why: str) -> None:
    key = int(site.bsub(app="short")["job"])
    with pytest.raises(Refused, match=why):
        bmod(site, key, **options)
    bmod(site, key, W="10", n="2")
    assert limits(site, key) == (600, 20)
    bmod(site, key, Wn=True, pn=True)
    assert limits(site, key) == (120, 20)
    plain = int(site.bsub(**options)["job"])
    with pytest.raises(Refused, match=why):
        bmod(site, plain, app="short")


def test_a_job_that_runs_stays_within_its_profile(site: Bench) -> None:
    key = running(site, app="short")
    with pytest.raises(Refused, match=TOO_LONG):
        bmod(site, key, W="11")
    bmod(site, key, W="10")
    bmod(site, key, Wn=True)
    assert limits(site, key) == (120, 20)


def test_limits_of_a_profile_stay_with_it(site: Bench) -> None:
    plain, own = int(site.bsub(app="short")["job"]), int(site.bsub(app="short", W="5")["job"])
    for app, wanted in (("long", ((6000, None), (300, None))), ("short", ((120, 20), (300, 20)))):
        for key in (plain, own):
            bmod(site, key, app=app)
        assert (limits(site, plain), limits(site, own)) == wanted
    for key in (plain, own):
        bmod(site, key, appn=True)
    assert (limits(site, plain), limits(site, own)) == ((None, None), (300, None))


def test_a_new_limit_is_for_the_default_host_too(site: Bench) -> None:
    """DEFAULT_HOST_SPEC: as if the job had been submitted with the new limit."""
    site.queues(QueueConfig(name="normal", default_host_spec="h1"))
    runs, waits = running(site, W="5"), int(site.bsub(W="5")["job"])
    for key in (runs, waits):
        bmod(site, key, W="6")
        assert site.cluster.spec_of(key).run_host == "h1"
        bmod(site, key, W="7/h3")
        assert site.cluster.spec_of(key).run_host == "h3"
        bmod(site, key, Wn=True)
        assert site.cluster.spec_of(key).run_host == ""
    bmod(site, waits, app="long")
    assert site.cluster.spec_of(waits).run_host == "h2"
