"""Submissions of one request: each gets what it would get alone, however much of it was read for one before it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from lavad.core.decide.base.decided import Decided
from lavad.core.decide.submit import submit as module
from lavad.core.decide.submit.alike import Alike
from lavad.core.decide.submit.submit import submit
from lavad.core.lang.asks import OptionValue, Refused, Submit
from lavad.core.lang.role_asks import RoleAsk
from tests.support.worlds.bench import ALICE
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
        return submit(world.cluster, ask, ALICE, NOW, LOCAL, alike=alike)
    except Refused as refused:
        return refused.text


def test_each_is_what_it_is_alone() -> None:
    world = World()
    alike: Alike = {}
    alone = [outcome(world, ask, None) for ask in ASKS]
    assert sum(isinstance(one, Decided) for one in alone) > 12
    assert [outcome(world, ask, alike) for ask in ASKS] == alone
    assert [outcome(world, ask, alike) for ask in ASKS[::-1]] == alone[::-1]


def test_what_differs_in_name_and_files_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    alike: Alike = {}
    outcome(world, PLAIN, alike)
    monkeypatch.setattr(module, "read_draft", None)
    for options in OPTIONS[:3]:
        assert isinstance(outcome(world, replace(PLAIN, command="other", options=options), alike), Decided)
