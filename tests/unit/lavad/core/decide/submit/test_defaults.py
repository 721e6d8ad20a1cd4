"""What an application profile gives a job that says nothing itself: DEFAULT_APPLICATION, and each of its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.queue import ApplicationConfig
from config.model.values import RequeueExit, Resizable
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.lang.asks import OptionValue, Submit
from lavad.core.site.conf import Params
from tests.support.worlds.bench import ALICE, LOCAL, Bench


@pytest.mark.parametrize(("options", "app"), [({}, "site"), ({"app": "own"}, "own")])
def test_a_job_without_a_profile_has_the_default_one(bench: Bench, options: dict[str, OptionValue], app: str) -> None:
    apps = (ApplicationConfig("site", runtime=60), ApplicationConfig("own", runtime=120))
    bench.configure(apps=apps, params=Params(default_application="site"))
    spec = bench.spec_of(**options)
    assert (spec.app, spec.estimate) == (app, 60 if app == "site" else 120)


@pytest.mark.parametrize(
    ("profile", "own", "field", "given", "asked"),
    [
        ({"requeue_exit_values": RequeueExit(values=(3,))}, {"Q": "5"}, "requeue", "3", "5"),
        ({"runtime": 60}, {"We": "2"}, "estimate", 60, 120),
        ({"runtime": 60, "estimated_runtime": 180}, {"We": "2"}, "estimate", 180, 120),
        ({"resizable_jobs": Resizable.AUTO, "resize_notify_cmd": "/site"}, {"rnc": "/own"}, "resize_command", "/site", "/own"),
        ({"resizable_jobs": Resizable.YES}, {"ar": True}, "autoresize", False, True),
        ({"resizable_jobs": Resizable.YES}, {"a": "pytorch"}, "resizable", True, False),
    ],
)
def test_a_profile_gives_what_a_job_does_not_say(
    bench: Bench, profile: dict[str, Any], own: dict[str, OptionValue], field: str, given: object, asked: object
) -> None:
    bench.configure(apps=(ApplicationConfig("a", **profile),))
    assert [getattr(bench.spec_of(app="a", **options), field) for options in ({}, own)] == [given, asked]


@pytest.mark.parametrize(("option", "field"), [("E", "pre_exec"), ("Ep", "post_exec")])
def test_commands_around_a_job_are_its_own_else_its_profiles(bench: Bench, option: str, field: str) -> None:
    bench.configure(apps=(ApplicationConfig("a", pre_exec="site pre", post_exec="site post"),))
    site = {"pre_exec": "site pre", "post_exec": "site post"}
    for own, wanted in (({}, site), ({option: "mine"}, site | {field: "mine"})):
        ask = Submit(command="true", options={"app": "a", **own})
        text = submit(bench.cluster, Given(ask, ALICE, bench.now, LOCAL)).texts[0][1]
        assert {name: getattr(text, name) for name in site} == wanted
