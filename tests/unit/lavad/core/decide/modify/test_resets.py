"""bmod of each option, and then its reset: the job is again what it was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.guarantees import ServiceClass
from config.model.queue import ApplicationConfig, QueueConfig
from lavad.core import events as ev
from lavad.core.site.reservation import Reservation
from proto.options import OPTIONS
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import TEXT, bmod, reset

VALUES: dict[str, Any] = {
    **dict.fromkeys(["B", "N", "Ne", "Ns", "Nd", "x", "ar", "label"], True),
    **dict.fromkeys(["C", "c", "D", "F", "M", "p", "ptl", "eptl", "S", "T", "v", "W", "We", "mig", "wt", "n", "sp"], "5"),
    **dict.fromkeys(["e", "eo", "i", "o", "oo", "outdir", "cwd", "L", "E", "Ep", "rnc", "k"], "/x/y"),
    "a": ["openmpi"],
    "app": "sim",
    "b": "13:00",
    "f": ["a > b"],
    "G": "dev",
    "g": "/g",
    "gpu": "num=1",
    "J": "other",
    "Jd": "text",
    "m": "h1",
    "nnodes": "5",
    "notify": "exit",
    "P": "p",
    "Q": "1",
    "q": "night",
    "R": ["rusage[mem=5]"],
    "rankfiles": "a.%R",
    "secret": ["a"],
    "sla": "gold",
    "t": "13:00",
    "U": "res",
    "u": "a@b",
    "w": "done(1)",
    "wa": "URG",
}
OTHERWISE = {"hl": "does nothing", "hostfile": "", "is": "", "r": "-rn is more than a reset", "ti": "is of -w"}
"""Why an option is not among these; "": a command sends more than its value."""
GIVEN = replace(TEXT, cwd="/home/alice", output="")


@pytest.fixture
def site(bench: Bench) -> Bench:
    bench.configure(
        apps=(ApplicationConfig(name="sim", runtime=60),),
        queues=(QueueConfig(name="normal", exclusive=True), QueueConfig(name="night")),
        service_classes=(ServiceClass(name="gold"),),
        user_groups=(("dev", ("alice",)),),
        params=replace(bench.cluster.conf.params, max_user_priority=9),
    )
    row = Reservation(name="res", users=("alice",), hosts=(("h1", 4),), begin=bench.now + 60, end=bench.now + 6000)
    bench.apply(ev.AdvanceReservationSet(at=bench.now, value=row))
    bench.submit("first")
    return bench


@pytest.mark.parametrize("option", [option.name for option in OPTIONS if option.has_reset and option.name not in OTHERWISE])
def test_a_reset_leaves_the_job_as_it_was(site: Bench, option: str) -> None:
    key = site.bsub(J="old")["job"]

    def now() -> tuple[object, ...]:
        return site.cluster.spec_of(key), site.job(key).name, site.job(key).depend

    before = now()
    changed = bmod(site, key, text=GIVEN, **{option: VALUES[option]})
    assert (*now(), changed) != (*before, GIVEN)
    assert bmod(site, key, text=changed, **reset(option)) == GIVEN
    assert now() == before


@pytest.mark.parametrize("default", ["", "d"])
@pytest.mark.parametrize(("folder", "wanted"), [("b", "/home/alice/b"), ("/b", "/b")])
def test_a_working_folder_is_one_below_that_of_submission(bench: Bench, folder: str, wanted: str, default: str) -> None:
    """Whatever the job had before; without one the site's default counts again."""
    bench.configure(params=replace(bench.cluster.conf.params, default_job_cwd=default))
    key = bench.bsub()["job"]
    text = bmod(bench, key, text=GIVEN, cwd="a/c")
    text = bmod(bench, key, text=text, cwd=folder)
    assert (text.cwd, text.submit_cwd) == (wanted, "/home/alice")
    assert bmod(bench, key, text=text, cwdn=True).cwd == f"/home/alice{'/d' if default else ''}"
