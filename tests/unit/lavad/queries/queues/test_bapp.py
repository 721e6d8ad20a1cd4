"""bapp: slots of jobs by application profile and state, and a profile at length."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig
from config.model.values import JobAction, JobControl, Limits, TaskLimit
from lavad.core import events as ev
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState
from tests.support.worlds.query_cluster import QueryCluster, at


@pytest.fixture
def profiles() -> QueryCluster:
    """``fluid`` has jobs in every state, ``idle`` has none."""
    c = QueryCluster()
    apps = (
        ApplicationConfig(
            name="fluid",
            description="Fluid dynamics",
            limits=Limits(run=600, cpu=90, mem=2048),
            default_host_spec="ol2",
            tasklimit=TaskLimit(2, 2, 8),
            rerunnable=False,
            mig=600,
            runtime=90,
            env_vars=(("FRUIT", "apple"), ("CAR", "")),
            job_controls=(JobControl(JobAction.SUSPEND, "SIGTSTP"),),
        ),
        ApplicationConfig(name="idle"),
    )
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, apps=apps)))
    c.submit(1, slots=3, max_slots=3, app="fluid")
    c.start(1, hosts="ol2:2 ol1")
    c.submit(2, slots=2, max_slots=2, app="fluid")
    c.submit(3, app="fluid", held=True)
    c.submit(4, app="fluid", indices="1-5")
    c.feed(ev.ElementsHeld(at=at("11:34:00"), key=4, elements=Ranges.span(2, 2)))
    c.submit(5)
    c.submit(6, app="fluid")
    c.start(6, hosts="ol2")
    c.feed(ev.JobSuspended(at=at("11:34:00"), key=6, state=JobState.SSUSP))
    c.submit(7, app="fluid")
    c.start(7, hosts="ol2")
    c.feed(ev.JobSuspended(at=at("11:34:00"), key=7, state=JobState.USUSP))
    return c


def test_slots_by_state(profiles: QueryCluster) -> None:
    assert profiles.ask("bapp") == (
        "APP_NAME           NJOBS   PEND    RUN   SUSP\n"
        "fluid                 13      8      3      2\n"
        "idle                   0      0      0      0\n",
        "",
        0,
    )


def test_some_profiles_without_a_header(profiles: QueryCluster) -> None:
    assert profiles.ask("bapp", "idle", noheader=True) == ("idle                   0      0      0      0\n", "", 0)
    assert profiles.ask("bapp", "nosuch") == ("", "nosuch: No such application profile\n", 255)


def test_a_profile_at_length(profiles: QueryCluster) -> None:
    out, err, status = profiles.ask("bapp", "fluid", l=True)
    assert (err, status) == ("", 0)
    lines = out.splitlines()
    assert lines[1:3] == ["APPLICATION NAME: fluid", " -- Fluid dynamics"]
    assert lines[lines.index("STATISTICS:") + 2].split() == ["13", "8", "3", "1", "1", "0"]
    begin = lines.index("PARAMETERS:") + 1
    assert lines[begin : begin + 7] == [
        "RERUNNABLE:  no", "MIG:  10 minutes", "RUNTIME:  1.5 minutes", "ENV_VARS:  FRUIT='apple',CAR=''", "", "JOB_CONTROLS:",
        "    SUSPEND:      [SIGTSTP]",
    ]  # fmt: skip
    tables = [line.split() for line in lines[begin + 7 :] if line]
    times = ["1.5", "min", "of", "ol2", "10.0", "min", "of", "ol2"]
    assert tables == [["CPULIMIT", "RUNLIMIT"], times, ["MEMLIMIT"], ["2048", "K"], ["TASKLIMIT"], ["2", "2", "8"]]
    assert " -- No description provided." in profiles.ask("bapp", "idle", l=True)[0].splitlines()


def test_a_site_without_profiles() -> None:
    assert QueryCluster().ask("bapp") == ("", "No application profiles found\n", 255)
