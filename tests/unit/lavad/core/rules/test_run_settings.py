"""What holds for a job while it runs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Limits
from config.values import values as v
from config.values.clusterwide import mail_pattern
from lavad.core.job.spec import Checkpoint, JobText, Role, Spec
from lavad.core.rules.run_settings import are_settled, mail_to, requested_mem, run_settings, text_settings
from lavad.core.site.conf import Params
from tests.support.worlds.world import World


@pytest.mark.parametrize(
    ("resreq", "mb"),
    [
        ("", 0.0),
        ("select[mem>10]", 0.0),
        ("rusage[mem=20]", 20.0),
        ("rusage[mem=20.50/host:duration=1h]", 20.5),
        ("rusage[swp=1||mem=20]", 20.0),
        ("2*{rusage[swp=1]}+3*{rusage[mem=5]}", 5.0),
        ("{rusage[mem=7]} || {rusage[mem=9]}", 7.0),
        ("not a requirement", 0.0),
    ],
)
def test_the_memory_that_a_requirement_reserves(resreq: str, mb: float) -> None:
    assert requested_mem(resreq) == mb


SPEC = Spec(queue="normal", user="ann", from_host="login1")


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("", JobText(command="c"), "ann"),
        ("!U", JobText(command="c"), "ann"),
        ("!U@example.org", JobText(command="c"), "ann@example.org"),
        ("!U@!H", JobText(command="c"), "ann@login1"),
        ("!U@example.org", JobText(command="c", mail_user="bob"), "bob"),
        ("!U@example.org", JobText(command="c", output="out"), ""),
        ("!U@example.org", JobText(command="c", output="out", notify_end=True), "ann@example.org"),
    ],
)
def test_where_mail_goes(pattern: str, text: JobText, wanted: str) -> None:
    assert mail_to(SPEC, text_settings(text), pattern) == wanted


@pytest.mark.parametrize("value", ["-t@x", "!U@x y", "!U;rm", "!U\n"])
def test_no_address(value: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        mail_pattern(value, v.Scope())


@pytest.mark.parametrize(
    ("spec", "settled"),
    [
        (SPEC, True),
        (replace(SPEC, limits=Limits(mem=100, run=None)), True),
        (replace(SPEC, limits=Limits(run=100)), False),
        (replace(SPEC, limits=Limits(cpu=100)), False),
        (replace(SPEC, roles=(Role("worker", limits=Limits(run=100)),)), False),
        (replace(SPEC, checkpoint=Checkpoint(folder="/c")), False),
    ],
)
def test_settings_that_follow_from_the_configuration_alone_are_those_of_any_host(spec: Spec, settled: bool) -> None:
    """Others are of a slower host, or of a cluster with a second machine, not what they are without them."""
    world, own = World(), text_settings(JobText(command="c"))
    world.hosts("login1", cpu_factor=2.0, boot_id="1", address="10.0.0.1")
    before = run_settings(world.cluster, spec, own, "login1")
    world.hosts("h", cpu_factor=1.0, boot_id="2", address="10.0.0.2")
    after = run_settings(world.cluster, spec, own, "h")
    assert are_settled(spec) is settled
    assert (before == after) is settled


@pytest.mark.parametrize(
    ("of_profile", "of_site", "enforced"),
    [
        ((), {}, False),
        ((), {"lsb_job_memlimit": True}, True),
        (("JOB",), {}, True),
        (("PROCESS", "JOB"), {}, True),
        (("PROCESS",), {"lsb_job_memlimit": True}, False),
        (("PROCESS",), {"lsb_resource_enforce": ("memory",)}, True),
    ],
)
def test_a_profile_says_whose_its_memory_limits_are(of_profile: tuple[str, ...], of_site: dict[str, Any], enforced: bool) -> None:
    world = World()
    world.configure(apps=(ApplicationConfig("a", memlimit_type=of_profile),), params=Params(**of_site))
    own = text_settings(JobText(command="c"))
    assert run_settings(world.cluster, replace(SPEC, app="a"), own, "h1").enforce_memory is enforced


def test_a_queue_says_as_whom_its_commands_run() -> None:
    world = World()
    world.configure(queues=(QueueConfig(name="night", pre_exec="x", pre_post_exec_user="root"),))
    found = run_settings(world.cluster, replace(SPEC, queue="night"), text_settings(JobText(command="c")), "h1")
    assert (found.queue_pre_exec, found.pre_post_exec_user) == ("x", "root")


@pytest.mark.parametrize(
    ("wanted", "text", "to"),
    [
        (False, JobText(command="c"), ""),
        (True, JobText(command="c", output="out"), "alice@h"),
        (True, JobText(command="c", output="out", mail_user="bob"), "bob"),
    ],
)
def test_who_gets_mail_of_post_execution_commands(wanted: bool, text: JobText, to: str) -> None:
    world = World()
    world.configure(params=Params(lsb_postexec_send_mail=wanted, lsb_mailto="!U@!H"))
    spec = replace(SPEC, user="alice", from_host="h")
    assert run_settings(world.cluster, spec, text_settings(text), "h1").post_mail == to
