"""Every kind of ask that administrators or strangers send is in the audit file as it should be, and no secret of it is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lavad.core.lang import asks
from lavad.core.lang.asks import Caller
from tests.support.worlds.bench import ADMIN, ALICE, BOB
from tests.unit.lavad.rpc.test_dispatch_fuzz import START, answered, made

SECRET = "s3cr3t"
ID = {"jobs": {"ids": ["1"]}}
OF_ADMINISTRATORS: dict[str, dict[str, Any]] = {
    "hosts": {"hosts": ["h1"], "close": True, "comment": "new disk"},
    "gpus": {"gpus": ["h1:0"], "close": True, "comment": "hot"},
    "queues": {"queues": ["normal"], "what": "qclose"},
    "lease": {"seconds": 60},
    "perfmon": {"what": "start"},
    "run": {"job": "1", "hosts": ["h1"]},
    "addreservation": {"name": "r", "slots": 1, "hosts": "h1", "users": "alice", "begin": "1:0", "end": "2:0"},
    "changereservation": {"name": "nosuch", "slots": 2},
    "dropreservation": {"name": "nosuch"},
    "reconfig": {},
}
OF_JOBS: dict[str, dict[str, Any]] = {
    "stop": ID,
    "resume": ID,
    "switch": ID | {"queue": "normal"},
    "move": {"job": "1", "top": True},
    "modify": {"job": "1", "options": {"sp": "3", "E": SECRET}, "command": SECRET, "script": SECRET},
    "post": {"job": "1", "text": SECRET, "body": SECRET},
    "kill": ID,
}


async def sent(folder: Path, asked: list[tuple[Caller, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The entries that these asks make."""
    entries: list[dict[str, Any]] = []
    engine, dispatch, store = await made(folder, entries.append)
    running = asyncio.ensure_future(engine.run())
    for caller, ask in START:
        await answered(dispatch, msgspec.json.encode(ask), caller)
    entries.clear()
    for number, (caller, ask) in enumerate(asked):
        await answered(dispatch, msgspec.json.encode(ask | {"uuid": f"u-{number}"}), caller)
    dispatch.audit.flush()
    running.cancel()
    store.close()
    return entries


def test_every_kind_of_ask_has_its_place_here() -> None:
    known = {str(kind.__struct_config__.tag) for kind in asks.Ask.__subclasses__()}
    shown = {"query", "wait", "changes", "judge", "attach", "peek", "submit", "bulk", "listtokens"}
    of_users = {"token", "revoketokens"}
    alike = {"requeue", "checkpoint", "migrate", "resize", "addgroup", "dropgroup", "changegroup"}
    assert known == {*OF_ADMINISTRATORS, *OF_JOBS} | shown | alike | of_users


@pytest.mark.parametrize("kind", [*OF_ADMINISTRATORS, *OF_JOBS])
def test_what_an_administrator_does_and_a_stranger_may_not(tmp_path: Path, kind: str) -> None:
    ask = {"ask": kind} | (OF_ADMINISTRATORS | OF_JOBS)[kind]
    entries = asyncio.run(sent(tmp_path, [(BOB, ask), (ADMIN, ask)]))
    stranger, administrator = [entry for entry in entries if entry["ask"] == kind]
    assert (stranger["user"], stranger["uid"], stranger["host"]) == (BOB.user, BOB.uid, BOB.host)
    assert (administrator["user"], administrator["uuid"], administrator["ask"]) == (ADMIN.user, "u-1", kind)
    assert stranger["refused"]
    assert "answer" in administrator or administrator["refused"]
    for name in ("hosts", "queues", "job", "name", "seconds", "comment"):
        if name in ask:
            assert administrator["object"][name] == ask[name]
    if "jobs" in ask:
        assert administrator["object"]["ids"] == ["1"]
    assert SECRET not in str([stranger, administrator])


def test_what_users_do_with_their_own_jobs_is_their_own(tmp_path: Path) -> None:
    asked: list[tuple[Caller, dict[str, Any]]] = [(ALICE, {"ask": kind} | fields) for kind, fields in OF_JOBS.items()]
    assert [entry for entry in asyncio.run(sent(tmp_path, asked)) if "answer" in entry] == []


def test_tokens_that_users_make_and_call_back_are_entries_without_the_token(tmp_path: Path) -> None:
    asked: list[tuple[Caller, dict[str, Any]]] = [
        (ALICE, {"ask": "token", "kind": "api"}),
        (ALICE, {"ask": "listtokens"}),
        (ALICE, {"ask": "revoketokens", "every": True}),
    ]
    made, gone = asyncio.run(sent(tmp_path, asked))
    assert (made["user"], made["ask"], made["answer"]) == (ALICE.user, "token", "ok")
    assert (gone["ask"], len(gone["done"]), gone["object"]) == ("revoketokens", 1, {"every": True})
    assert "eyJ" not in str(made)


def test_a_refused_submission_is_an_entry_without_what_was_submitted(tmp_path: Path) -> None:
    ask = {
        "ask": "submit",
        "command": SECRET,
        "script": SECRET,
        "env": {"TOKEN": SECRET},
        "cwd": f"/{SECRET}",
        "options": {"q": "nosuch", "E": SECRET, "Jd": SECRET},
    }
    (entry,) = asyncio.run(sent(tmp_path, [(ALICE, ask)]))
    assert entry["object"] == {"options": ["E", "Jd", "q"]}
    assert "nosuch" in entry["refused"]
    assert SECRET not in str(entry)


def test_of_many_submissions_the_refused_ones_are_one_entry_without_what_was_submitted(tmp_path: Path) -> None:
    own = {"command": SECRET, "env": {"TOKEN": SECRET}, "cwd": f"/{SECRET}", "options": {"q": "nosuch", "Jd": SECRET}}
    ask = {"ask": "bulk", "env": {"KEY": SECRET}, "options": {"E": SECRET}, "jobs": [own, {"command": SECRET}, own]}
    (entry,) = asyncio.run(sent(tmp_path, [(ALICE, ask)]))
    assert entry["object"] == {"jobs": 3, "options": ["E"]}
    assert entry["jobs_refused"] == 2
    assert "nosuch" in entry["refused"]
    assert SECRET not in str(entry)


def test_what_is_not_understood_is_an_entry(tmp_path: Path) -> None:
    (entry,) = asyncio.run(sent(tmp_path, [(BOB, {"ask": "nosuch", "command": SECRET})]))
    assert entry["ask"] == "?"
    assert entry["refused"].startswith("Bad request")
    assert SECRET not in str(entry)


def test_a_flood_of_refusals_is_summed_up(tmp_path: Path) -> None:
    found = asyncio.run(
        sent(tmp_path, [(BOB, {"ask": "lease", "seconds": 60})] * 200 + [(ALICE, {"ask": "lease", "seconds": 60})])
    )
    of_bob = [entry for entry in found if entry["user"] == BOB.user]
    assert len(of_bob) < 60
    assert sum(entry.get("more_like_this", 1) for entry in of_bob) == 200
    assert of_bob[-1]["ask"] == "lease"
    assert [entry["user"] for entry in found].count(ALICE.user) == 1, "others are not held up"
