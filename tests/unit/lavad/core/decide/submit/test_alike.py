"""Submissions of one request or second: each gets what it would get alone, however much of it was read for one before it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lavad.core.decide.base.decided import Decided
from lavad.core.decide.submit.alike import MOST, Alike, Lately, Run, runs_with
from lavad.core.decide.submit.submit import Given, submit, submit_in
from lavad.core.events import Event, SpecAdded
from lavad.core.events.apply import apply_all
from lavad.core.lang.asks import OptionValue, Refused, Submit
from lavad.core.lang.role_asks import RoleAsk
from tests.support.examples import examples
from tests.support.worlds.bench import ALICE, BOB
from tests.support.worlds.snapshot import difference, snapshot
from tests.support.worlds.world import World

NOW = 1000.0
LOCAL = datetime(2026, 11, 22, tzinfo=UTC)
PLAIN = Submit(command="a", cwd="/w", home="/h", shell="/bin/sh", env_hash="e1")
OPTIONS: list[dict[str, OptionValue]] = [
    {"J": "other", "o": "out", "e": "err"},
    {"oo": "out", "Jd": "said"},
    {"o": "out", "oo": "over"},
    {"J": "a[1-5]%2"},
    {"J": "a["},
    {"J": "x" * 70_000},
    {"n": "2", "R": ["rusage[mem=1]"], "W": "5"},
    {"n": "2", "R": ["rusage[mem=2]"], "W": "5"},
    {"q": "nosuch"},
    {"H": True, "P": "p", "b": "1:00"},
    {"cwd": "below", "outdir": "/o"},
    {"I": True},
    {"I": True, "J": "a[1-5]"},
    {"a": ["pytorch"]},
    {"zz": "1"},
]
ASKS = [
    PLAIN,
    replace(PLAIN, command="b c"),
    replace(PLAIN, script="#!/bin/sh\n:\n", env_hash="e2"),
    replace(PLAIN, cwd="/other", umask=0o77),
    replace(PLAIN, command=" "),
    replace(PLAIN, command="python train.py", options={"a": ["pytorch"]}),
    replace(PLAIN, command="mpirun x", options={"a": ["mpi"]}),
    replace(PLAIN, command="./x", options={"a": ["mpi"]}),
    replace(PLAIN, command="", roles=[RoleAsk(name="r", command="x")]),
    replace(PLAIN, command="", roles=[RoleAsk(name="s", command="y")]),
    *(replace(PLAIN, options=options, command=f"c{at}") for at, options in enumerate(OPTIONS)),
]


def outcome(world: World, ask: Submit, alike: Alike | None) -> Decided | str:
    try:
        return submit(world.cluster, Given(ask, ALICE, NOW, LOCAL, alike=alike))
    except Refused as refused:
        return refused.text


def test_each_is_what_it_is_alone() -> None:
    world = World()
    alike: Alike = {}
    alone = [outcome(world, ask, None) for ask in ASKS]
    assert sum(isinstance(one, Decided) for one in alone) > 12
    assert [outcome(world, ask, alike) for ask in ASKS] == alone
    assert [outcome(world, ask, alike) for ask in ASKS[::-1]] == alone[::-1]


def test_what_differs_in_name_and_files_is_read_once() -> None:
    world = World()
    alike: Alike = {}
    outcome(world, PLAIN, alike)
    for options in OPTIONS[:3]:
        assert isinstance(outcome(world, replace(PLAIN, command="other", options=options), alike), Decided)
        assert len(alike) == 1


def test_what_is_kept_holds_while_the_site_is_the_same_for_a_second() -> None:
    world = World()
    lately = Lately()
    kept = lately.find(world.cluster, NOW)
    assert isinstance(outcome(world, PLAIN, kept), Decided)
    world.submit()
    assert lately.find(world.cluster, NOW + 0.9) is kept
    assert lately.find(world.cluster, NOW + 1.0) is not kept
    changes: list[Callable[[], object]] = [
        lambda: world.queue_switch("normal", open=False),
        lambda: world.hosts("another"),
        lambda: world.configure(replace(world.cluster.conf, models=(("other", 2.0),))),
    ]
    for change in changes:
        kept = lately.find(world.cluster, NOW)
        change()
        assert lately.find(world.cluster, NOW) is not kept


def test_others_do_not_get_what_was_read_for_a_caller() -> None:
    world = World()
    alike: Alike = {}
    submit(world.cluster, Given(PLAIN, ALICE, NOW, LOCAL, alike=alike))
    [event] = [
        one for one in submit(world.cluster, Given(PLAIN, BOB, NOW, LOCAL, alike=alike)).events if isinstance(one, SpecAdded)
    ]
    assert event.value.user == BOB.user


def test_little_is_kept() -> None:
    world = World()
    lately = Lately()
    for number in range(3 * MOST):
        outcome(world, replace(PLAIN, cwd=f"/w/{number}"), lately.find(world.cluster, NOW))
    assert len(lately.find(world.cluster, NOW)) <= MOST


RUN_OPTIONS: list[dict[str, OptionValue]] = [
    {},
    {"g": "/a/b", "P": "p"},
    {"g": "/a" * 20},
    {"H": True},
    {"n": "2"},
    {"M": "auto"},
    {"R": ["rusage[mem=1]"]},
]
OWN_OPTIONS: list[dict[str, OptionValue]] = [
    {},
    {"J": "one"},
    {"J": "a]"},
    {"o": "out", "e": "err", "Jd": "said"},
    {"oo": ["x"] * 2},
    {"o": "x" * 70_000},
    {"J": "long" * 300},
]


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(RUN_OPTIONS),
    st.lists(st.tuples(st.sampled_from(OWN_OPTIONS), st.sampled_from(["a", "b c", " ", "long " * 400])), min_size=1, max_size=20),
    st.fixed_dictionaries({"max_pend_jobs": st.sampled_from([None, 4, 9]), "max_user_records": st.sampled_from([12, 100_000])}),
    st.sampled_from([1_000_000, 6, 14]),
)
def test_a_run_is_what_its_submissions_are_one_by_one(
    common: dict[str, OptionValue],
    own: list[tuple[dict[str, OptionValue], str]],
    limits: dict[str, int | None],
    max_jobid: int,
) -> None:
    together, apart = World(), World()
    for world in (together, apart):
        world.configure(params=replace(world.cluster.conf.params, max_jobid=max_jobid, **limits))
        world.submit()
    asks = [replace(PLAIN, command=command, options=common | options) for options, command in own]
    assert all(runs_with(asks[0], ask) for ask in asks)
    run, alike, events, found, alone = Run(), Alike(), list[Event](), list[object](), list[object]()
    for ask in asks:
        try:
            found.append(submit_in(run, together.cluster, Given(ask, ALICE, NOW, LOCAL, alike=alike)))
        except Refused as refused:
            found.append((refused.text, refused.retry))
        try:
            decided = submit(apart.cluster, Given(ask, ALICE, NOW, LOCAL))
            apply_all(apart.cluster, decided.events)
            events += decided.events
            alone.append(decided.answer)
        except Refused as refused:
            alone.append((refused.text, refused.retry))
    assert found == alone
    assert run.events == events
    apply_all(together.cluster, run.events)
    assert not difference(snapshot(together.cluster), snapshot(apart.cluster))


def test_what_has_to_be_decided_by_itself_is_in_no_run() -> None:
    for options in ({"w": "done(x)"}, {"a": ["mpi"]}, {"n": "2"}, {"J": "a[1-3]"}):
        assert not runs_with(PLAIN, replace(PLAIN, options=options))
    assert not runs_with(PLAIN, replace(PLAIN, cwd="/elsewhere"))
    assert not runs_with(PLAIN, replace(PLAIN, roles=[RoleAsk(name="r", command="x")]))
    assert runs_with(PLAIN, replace(PLAIN, command="other", script="x", options={"J": "n", "oo": "f"}))
