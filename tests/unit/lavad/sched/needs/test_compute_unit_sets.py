"""cu[]: a gang within the fewest racks, by preference; compared with brute force on small clusters."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.job.job import Placed
from lavad.core.lang.resreq.sections import Cu
from lavad.core.plan.plan import Placement, Plan
from lavad.core.site.conf import Params, ResourceConf, UnitConf
from lavad.sched.needs.compute_unit_sets import Room, balanced, unit_sets
from tests.support.examples import examples
from tests.support.worlds.world import World

FREE = {"h1": 4, "h2": 2, "h3": 4, "h4": 4, "h5": 6, "h6": 1}
RACKS = {"r1": ("h1", "h2"), "r2": ("h3", "h4"), "r3": ("h5",)}
"""h6 is in no rack. Slots: r1 6, r2 8, r3 6."""


def world() -> World:
    world = World()
    world.configure(
        host_groups=(*RACKS.items(), ("row1", ("r1", "r2")), ("row2", ("r3",))),
        params=Params(
            compute_unit_types=("rack", "row"),
            units=(*(UnitConf(name, "rack") for name in RACKS), UnitConf("row1", "row"), UnitConf("row2", "row")),
        ),
        resources=(ResourceConf(name="big"),),
    )
    for name, slots in FREE.items():
        world.hosts(name, slots=slots)
    return world


@pytest.mark.parametrize(
    ("slots", "cu", "wanted"),
    [
        (6, "pref=config", {"h1": 4, "h2": 2}),
        (7, "pref=config", {"h3": 4, "h4": 3}),
        (5, "pref=maxavail", {"h3": 4, "h4": 1}),
        (5, "pref=bestfit", {"h1": 4, "h2": 1}),
        (12, "type=rack", {"h1": 4, "h2": 2, "h3": 4, "h4": 2}),
        (14, "type=rack:maxcus=2", {"h1": 4, "h2": 2, "h3": 4, "h4": 4}),
        (15, "maxcus=2", {}),
        (20, "pref=minavail", {"h1": 4, "h2": 2, "h5": 6, "h3": 4, "h4": 4}),
        (21, "pref=config", {}),
        (14, "type=row", {"h1": 4, "h2": 2, "h3": 4, "h4": 4}),
        (14, "type=2", {"h1": 4, "h2": 2, "h3": 4, "h4": 4}),
        (12, "type=1", {"h1": 4, "h2": 2, "h3": 4, "h4": 2}),
        (5, "type=row:pref=minavail", {"h5": 5}),
        (8, "usablecuslots=7", {"h3": 4, "h4": 4}),
        (12, "balance:maxcus=3", {"h1": 4, "h2": 2, "h3": 4, "h4": 2}),
        (18, "balance", {"h1": 4, "h2": 2, "h3": 4, "h4": 2, "h5": 6}),
        (20, "balance", {}),
    ],
)
def test_the_fewest_units_then_the_preferred(slots, cu, wanted):
    w = world()
    job = w.submit(slots=slots, resreq=f"cu[{cu}]")
    assert w.step() == ({job: wanted} if wanted else {})


def test_a_job_that_no_unit_holds_waits_and_says_so():
    w = world()
    job = w.submit(slots=7, resreq="cu[maxcus=1]")
    w.submit(slots=1, hosts=("h3",))
    w.step()
    other = w.submit(slots=7, resreq="cu[maxcus=1]")
    w.step()
    assert job in w.running()
    assert 312 in {code for code, _ in w.why(other)}


def test_units_with_ptile_and_resources():
    w = world()
    job = w.submit(slots=4, resreq="cu[maxcus=1] span[ptile=2]")
    assert w.step() == {job: {"h1": 2, "h2": 2}}
    job = w.submit(slots=2, resreq="cu[maxcus=1] span[ptile=1] rusage[mem=16000]")
    assert w.step() == {job: {"h3": 1, "h4": 1}}
    w.submit(slots=2, resreq="cu[maxcus=1] span[ptile=1] rusage[mem=15000]")
    assert w.step() == {}


def test_units_of_its_own():
    w = world()
    first = w.submit(slots=1, hosts=("h2",))
    w.step()
    job = w.submit(slots=3, resreq="cu[excl]", exclusive=True)
    assert w.step() == {job: {"h3": 3}}
    run = w.cluster.jobs.rows[job].run
    assert run is not None
    assert run.alone == ("h4",)
    check_invariants(w.cluster)
    other = w.submit(slots=2, hosts=("r2",))
    again = w.submit(slots=7, resreq="cu[excl:maxcus=1]", exclusive=True)
    assert w.step() == {}
    assert dict(w.why_names(other))["HOST_EXCLUSIVE"] == ("h3", "h4")
    w.finish(first)
    assert w.step() == {}
    w.finish(job)
    assert w.step() == {other: {"h3": 2}}
    w.finish(other)
    assert w.step() == {again: {"h3": 4, "h4": 3}}
    check_invariants(w.cluster)


def test_the_master_checks_that_units_are_empty():
    w = world()
    w.submit(hosts=("h4",))
    w.step()
    job = w.submit(slots=3, resreq="cu[excl]", exclusive=True)
    wrong = Placement(job, (Placed(host="h3", slots=3),), alone=("h4",))
    assert accept_plan(w.cluster, Plan(w.cluster.version, (wrong,)), w.now, "s") == []
    assert w.step() == {job: {"h1": 3}}


def test_a_unit_is_a_name_for_m():
    w = world()
    job = w.submit(slots=3, hosts=("r2",))
    assert w.step() == {job: {"h3": 3}}


racks = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@settings(max_examples=examples(300))
@given(racks, st.integers(1, 40), st.sampled_from([None, 1, 2, 3]), st.sampled_from(["", "maxavail", "minavail", "bestfit"]))
def test_the_number_of_units_is_the_least_that_brute_force_finds(slots, wanted, maxcus, pref):
    rooms = [Room(at, count) for at, count in enumerate(slots)]
    most = min(len(rooms), maxcus or len(rooms))
    least = next(
        (n for n in range(1, most + 1) if any(sum(r.slots for r in some) >= wanted for some in combinations(rooms, n))), None
    )
    found = next(unit_sets(rooms, wanted, Cu(pref=pref, maxcus=maxcus)), None)
    assert (None if found is None else len(found)) == least
    if found is not None:
        assert sum(slots[unit] for unit in found) >= wanted
        assert len(set(found)) == len(found)


@settings(max_examples=examples(300))
@given(racks, st.integers(1, 30), st.sampled_from([None, 2, 3]))
def test_balanced_shares_differ_by_one_at_most(slots, wanted, maxcus):
    for shares in balanced([Room(at, count) for at, count in enumerate(slots)], wanted, Cu(balance=True, maxcus=maxcus)):
        counts = [count for _, count in shares]
        assert sum(counts) == wanted
        assert max(counts) - min(counts) <= 1
        assert all(slots[unit] >= count for unit, count in shares)
        assert len({unit for unit, _ in shares}) == len(shares) <= (maxcus or 9)


HOSTS = """
Begin HostGroup
GROUP_NAME GROUP_MEMBER
hg1 (h3 h4)
End HostGroup
Begin ComputeUnit
NAME   MEMBER      TYPE
encl1  (h[1-2])    enclosure
encl2  (hg1)       enclosure
encl3  (h2)        enclosure
rack1  (encl1 encl2) rack
rack2  (h9)        rack
oops   (h8)        cabinet
End ComputeUnit
"""


def test_units_are_read_and_checked(tmp_path: Path):
    (tmp_path / "lsb.params").write_text("Begin Parameters\nCOMPUTE_UNIT_TYPES = enclosure rack!\nEnd Parameters\n")
    (tmp_path / "lsb.hosts").write_text(HOSTS)
    loaded = load(str(tmp_path))
    errors = [(problem.line, problem.text) for problem in loaded.problems if "compute unit" in problem.text]
    assert errors == [
        (10, "compute unit encl3: h2 is in encl1 already"),
        (12, "compute unit rack2: h9 is not a compute unit of type enclosure"),
        (13, "compute unit oops: type cabinet is not in COMPUTE_UNIT_TYPES"),
    ]
    conf = resolve(loaded.config)
    assert (conf.params.unit_types, conf.params.unit_type) == (("enclosure", "rack"), "rack")
    words = {word: conf.params.unit_type_of(word) for word in ("", "rack", "1", "2", "3", "0", "row", "²", "9" * 5000)}
    assert {word[:5]: kind for word, kind in words.items() if kind} == {"": "rack", "rack": "rack", "1": "enclosure", "2": "rack"}
    assert conf.params.units[0] == UnitConf("encl1", "enclosure")
    assert dict(conf.host_groups)["encl1"] == ("h1", "h2")
