"""bmod of a job that waits: it refuses what bsub would have refused, and gives what bsub would have given."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.guarantees import ServiceClass
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import Chkpnt, Limits, Resizable
from lavad.core import events as ev
from lavad.core.decide.modify.switch import switch
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Refused, Select, Switch
from lavad.core.site.conf import UnitConf
from lavad.core.site.reservation import Reservation
from tests.support.worlds.bench import Bench
from tests.unit.lavad.core.decide.modify.test_modify import TEXT, bmod

SIM = ApplicationConfig(
    name="sim",
    res_req="select[mem>5]",
    chkpnt=Chkpnt(dir="/a", period=60),
    runtime=600,
    limits=Limits(run=6000),
    pre_exec="/bin/sim",
)
AGAIN = ApplicationConfig(name="again", rerunnable=True)
GROWS = ApplicationConfig(name="grows", resizable_jobs=Resizable.AUTO)

NIGHT = QueueConfig(
    name="night", rerunnable=True, chkpnt=Chkpnt(dir="/q", period=60), limits=Limits(mem=500_000), default_host_spec="h3"
)

CLASSES = (
    ServiceClass(name="gold", queues=("normal",), projects=("mine",), apps=("grows",), fairshare_groups=("dev",)),
    ServiceClass(name="his", users=("bob",)),
)
GOLD = {"sla": "gold", "q": "normal", "P": "mine", "app": "grows", "G": "dev"}
"""What lets a job into that class."""


@pytest.fixture
def site(bench: Bench) -> Bench:
    bench.configure(
        apps=(SIM, GROWS, AGAIN),
        queues=(QueueConfig(name="normal", priority=30, exclusive=True), NIGHT),
        params=replace(bench.cluster.conf.params, compute_unit_types=("rack",), units=(UnitConf(name="r1", type="rack"),)),
        service_classes=CLASSES,
        user_groups=(("dev", ("alice",)), ("qa", ("alice",))),
    )
    for name, user in (("res", "alice"), ("his", "bob")):
        row = Reservation(name=name, users=(user,), hosts=(("h1", 4),), begin=bench.now + 60, end=bench.now + 6000)
        bench.apply(ev.AdvanceReservationSet(at=bench.now, value=row))
    return bench


NOTHING: dict[str, Any] = {}


def text_of(options: dict[str, Any]) -> JobText:
    """The text of a job that was submitted with these options."""
    return replace(TEXT, interactive=next((name for name in ("Ip", "Is") if name in options), ""))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"a": ["mpi"], "n": "2"}, {"ar": True}),
        ({"ar": True, "n": "1,4"}, {"a": ["mpi"]}),
        ({"b": "13:00"}, {"t": "12:30"}),
        ({"t": "12:30"}, {"b": "13:00"}),
        ({"Ip": True}, {"r": True}),
        ({"Is": True}, {"k": "/ck 5"}),
        ({}, {"R": "cu[excl]"}),
        ({"U": "res"}, {"m": "h2"}),
        ({"m": "h2"}, {"U": "res"}),
        ({}, {"U": "his"}),
        ({}, {"sla": "his"}),
        ({}, {"sla": "gold"}),
        (GOLD, {"q": "night"}),
        (GOLD, {"P": "other"}),
        (GOLD, {"app": "sim"}),
        (GOLD, {"G": "qa"}),
    ],
)
def test_it_refuses_what_bsub_refuses(site: Bench, first: dict[str, Any], then: dict[str, Any]) -> None:
    with pytest.raises(Refused) as by_bsub:
        site.bsub(**{**first, **then})
    key = site.bsub(**first)["job"]
    before = site.cluster.spec_of(key)
    with pytest.raises(Refused) as by_bmod:
        bmod(site, key, text=text_of(first), **then)
    assert by_bmod.value.text == by_bsub.value.text
    assert site.cluster.spec_of(key) == before


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({}, {"app": "sim"}),
        ({"W": "10", "R": "rusage[mem=5]"}, {"app": "sim"}),
        ({}, {"app": "grows"}),
        ({"app": "sim"}, {"R": "rusage[mem=5]"}),
        ({"app": "grows"}, {"a": ["mpi"]}),
        ({"app": "grows"}, {"app": "sim"}),
        ({"app": "again"}, {"app": "sim"}),
        ({"q": "night", "app": "again"}, {"app": "sim"}),
        ({"app": "again"}, {"app": "again", "r": True}),
        ({"q": "night"}, {"q": "normal"}),
        ({"q": "night", "app": "again"}, {"q": "normal"}),
        ({"q": "night"}, {"q": "normal", "r": True}),
        ({"q": "night"}, {"q": "normal", "k": "/q 1"}),
        ({"q": "night"}, {"q": "night"}),
    ],
)
def test_it_gives_what_bsub_gives(site: Bench, first: dict[str, Any], then: dict[str, Any]) -> None:
    wanted, key = site.spec_of(**{**first, **then}), site.bsub(**first)["job"]
    bmod(site, key, text=text_of(first), **then)
    assert site.cluster.spec_of(key) == wanted


def test_what_a_profile_has_given_goes_with_it(site: Bench) -> None:
    plain = site.spec_of()
    key = site.bsub(app="sim")["job"]
    text = bmod(site, key, text=replace(TEXT, pre_exec="/bin/sim"), appn=True)
    assert site.cluster.spec_of(key) == plain
    assert text.pre_exec == ""


@pytest.mark.parametrize("by_bmod", [False, True], ids=["bswitch", "bmod -q"])
@pytest.mark.parametrize("first", [{}, {"W": "10"}, {"k": "/ck 5"}, {"M": "auto"}, {"M": "1G auto"}, {"Ip": True}, {"rn": True}])
def test_another_queue_gives_what_it_gives_to_a_job_that_is_submitted_there(
    site: Bench, first: dict[str, Any], by_bmod: bool
) -> None:
    wanted, key = site.spec_of(**first, q="night"), site.bsub(**first)["job"]
    if by_bmod:
        bmod(site, key, text=text_of(first), q="night")
    else:
        assert site.asked(switch, Switch(queue="night", jobs=Select(ids=[str(key)]))) == [(str(key), "")]
    assert site.cluster.spec_of(key) == wanted


def test_a_job_that_leaves_its_queue_keeps_what_it_has_named_and_the_checkpoint_that_it_has_made(site: Bench) -> None:
    plain, named = site.spec_of(), site.spec_of(k="/ck 5")
    fresh, own, begun = (site.bsub(q="night", **given)["job"] for given in (NOTHING, {"k": "/ck 5"}, NOTHING))
    site.cluster.jobs.put(begun, replace(site.cluster.jobs.rows[begun], checkpoint=3))
    for key in (fresh, own, begun):
        assert site.asked(switch, Switch(queue="normal", jobs=Select(ids=[str(key)]))) == [(str(key), "")]
    assert [site.cluster.spec_of(key) for key in (fresh, own)] == [plain, named]
    assert (checkpoint := site.cluster.spec_of(begun).checkpoint) is not None
    assert checkpoint.folder == "/q"
