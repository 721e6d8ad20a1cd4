"""What programs ask that have many jobs under way, over a real master."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.worlds.page import ALICE, BOB, PageWorld
from web.rest.routes import ROOT


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageWorld]:
    with PageWorld(tmp_path_factory.mktemp("page")) as made:
        yield made


def post(world: PageWorld, path: str, body: Any, status: int = 200, key: str = "") -> Any:
    answer = world.client.post(ROOT + path, json=body, headers=world.bearer(ALICE) | {"Idempotency-Key": key})
    assert answer.status_code == status, answer.text
    return answer.json()


def get(world: PageWorld, path: str, status: int = 200, **params: Any) -> Any:
    answer = world.client.get(ROOT + path, params=params, headers=world.bearer(ALICE))
    assert answer.status_code == status, answer.text
    return answer.json()


def test_many_commands_are_submitted_once_and_in_their_order(world: PageWorld) -> None:
    body = {"commands": ["true", ["echo", "two words"], "false"], "options": {"H": True, "J": "many"}, "env": {"A": "b"}}
    made = post(world, "/jobs/bulk", body, key="k")
    again = post(world, "/jobs/bulk", body, key="k")
    ids = [row["id"] for row in made["results"]]
    assert again == made
    assert len(set(ids)) == 3
    listed = post(world, "/jobs/listing", {"ids": [*ids, "99999"], "fields": "jobid stat command"})["records"]
    assert [row.get("COMMAND") for row in listed] == ["true", "echo 'two words'", "false", None]
    assert "is not found" in listed[3]["ERROR"]
    killed = post(world, "/jobs/kill", {"ids": [ids[0], ids[2]]})["results"]
    assert [(row["id"], row["ok"]) for row in killed] == [(ids[0], True), (ids[2], True)]
    assert post(world, "/jobs/kill", {"ids": ["99999"]})["results"][0]["why"] == "No matching job found"
    ended = get(world, f"/jobs/{ids[0]}/end")
    assert (ended["state"], ended["host"]) == ("EXIT", "")
    said = world.client.get(f"{ROOT}/jobs/{ids[1]}/explanation", headers=world.bearer(BOB))
    assert (said.status_code, "it is held" in said.text) == (200, True)
    used = world.client.get(f"{ROOT}/jobs/{ids[0]}/stats", headers=world.bearer(ALICE))
    assert (used.status_code, f"Job <{ids[0]}>" in used.text, "Advice" in used.text) == (200, True, False)
    assert world.client.get(f"{ROOT}/jobs/99999/stats", headers=world.bearer(ALICE)).status_code == 404


def test_one_of_many_that_is_refused_says_why(world: PageWorld) -> None:
    rows = post(world, "/jobs/bulk", {"commands": ["true"], "options": {"q": "nowhere"}})["results"]
    assert [(row["id"], "No such queue" in row["why"]) for row in rows] == [("", True)]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/jobs/bulk", {"commands": []}, 400, "commands"),
        ("/jobs/bulk", {"commands": [" "]}, 400, "empty"),
        ("/jobs/bulk", {"commands": ["true"] * 5001}, 400, "5000"),
        ("/jobs/bulk", {"commands": ["true"], "cwd": "here"}, 400, "absolute"),
        ("/jobs/kill", {"ids": []}, 400, "ids"),
        ("/jobs/listing", {"ids": ["1"], "fields": "nonsense"}, 400, "nonsense"),
    ],
)
def test_what_goes_wrong_is_a_problem(world: PageWorld, path: str, body: Any, status: int, words: str) -> None:
    assert words in post(world, path, body, status)["detail"]


def test_changes_of_the_callers_jobs_are_told_after_a_cursor(world: PageWorld) -> None:
    begin = get(world, "/changes")
    assert begin["changes"] == []
    job = post(world, "/jobs/bulk", {"commands": ["true"], "options": {"H": True}})["results"][0]["id"]
    post(world, "/jobs/kill", {"ids": [job]})
    told = get(world, "/changes", after=begin["after"], wait=1)
    assert [(row["job"], row["state"], row["reason"]) for row in told["changes"]] == [(job, "EXIT", "TERM_OWNER")]
    assert get(world, "/changes", after="of.another")["lost"] is True
    assert get(world, "/changes", after=told["after"])["changes"] == []
    theirs = world.client.get(f"{ROOT}/changes", headers=world.bearer(BOB)).json()
    assert theirs["changes"] == []
    assert "seconds" in get(world, "/changes", 400, wait=60)["detail"]
    assert "number of a job" in get(world, "/jobs/1[2]/end", 400)["detail"]
    assert "true or false" in get(world, "/jobs/1/output", 400, whole="yes")["detail"]
