"""REST over a real master: pages by cursor, submissions, changes, problems; every route's answer is as OpenAPI says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from lavad.core import events as ev
from lavad.core.site.host import Facts
from proto.answers import Answer
from tests.support.worlds.page import ALICE, BOB, BOSS, PageWorld
from web import app as pages
from web.app import HEADERS, make_app
from web.master import Frame, Master
from web.rest import changes
from web.rest.described import COMMON
from web.rest.routes import ROOT, TABLE
from web.rest.submit import options_of
from web.signin import SignIn, Who


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageWorld]:
    with PageWorld(tmp_path_factory.mktemp("page")) as made:
        yield made


def get(world: PageWorld, path: str, **params: Any) -> Any:
    answer = world.client.get(f"{ROOT}{path}", params=params, headers=world.bearer(ALICE))
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit(world: PageWorld, **body: Any) -> str:
    answer = world.client.post(f"{ROOT}/jobs", json={"command": "sleep 1", **body}, headers=world.bearer(ALICE))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_pages_of_jobs_follow_each_other_without_a_gap(world: PageWorld) -> None:
    made = [submit(world, options={"H": True, "J": f"page{n}"}) for n in range(5)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = get(world, "/jobs", search="page", limit=2, cursor=cursor)
        seen += [row["id"] for row in page["jobs"]]
        if page["next"] is None:
            break
        cursor = page["next"]
    assert seen == made[::-1]
    by_name = get(world, "/jobs", search="page", sort="name", limit=3)
    assert [row["name"] for row in by_name["jobs"]] == ["page0", "page1", "page2"]
    rest = get(world, "/jobs", search="page", sort="name", limit=3, cursor=by_name["next"])
    assert [row["name"] for row in rest["jobs"]] == ["page3", "page4"]
    assert rest["next"] is None


def test_a_submission_with_a_key_is_done_once(world: PageWorld) -> None:
    headers = world.bearer(ALICE) | {"Idempotency-Key": "the same"}
    first, again = (world.client.post(f"{ROOT}/jobs", json={"command": "true"}, headers=headers).json() for _ in range(2))
    assert first == again
    other = world.client.post(f"{ROOT}/jobs", json={"command": "true"}, headers=headers | world.bearer(BOB)).json()
    assert other["id"] != first["id"]
    # with the same key at another address it is another request
    answer = world.client.post(f"{ROOT}/jobs/99999/kill", json={}, headers=headers)
    assert answer.status_code == 404, answer.text


def test_a_job_is_told_at_length(world: PageWorld) -> None:
    ident = submit(world, command=["echo", "two words"], options={"n": 2, "H": True, "J": "long"}, env={"A": "b"})
    job = get(world, f"/jobs/{ident}")
    assert job["command"] == "echo 'two words'"
    assert (job["row"]["state"], job["row"]["slots"], job["cwd"]) == ("PSUSP", 2, "/home/alice")
    assert job["may_change"] is True
    assert "Submitted from host" in job["story"][0]["text"]
    assert get(world, f"/jobs/{ident}/why")["state"] == "PSUSP"


def test_changes_are_made_as_the_user(world: PageWorld) -> None:
    ident = submit(world, options={"H": True})

    def post(what: str, body: dict[str, Any] | None = None) -> int:
        return world.client.post(f"{ROOT}/jobs/{ident}/{what}", json=body or {}, headers=world.bearer(ALICE)).status_code

    assert post("resume") == 200
    assert get(world, f"/jobs/{ident}")["row"]["state"] == "PEND"
    assert post("stop", {"reason": "later"}) == 200
    patched = world.client.patch(f"{ROOT}/jobs/{ident}", json={"options": {"n": 3}}, headers=world.bearer(ALICE))
    assert patched.status_code == 200, patched.text
    assert get(world, f"/jobs/{ident}")["row"]["slots"] == 3
    assert post("kill", {"reason": "enough"}) == 200
    assert get(world, f"/jobs/{ident}")["row"]["state"] == "EXIT"
    assert [row["id"] for row in get(world, "/jobs", state="finished", limit=1)["jobs"]] == [ident]


def test_what_a_change_names_is_no_address(world: PageWorld) -> None:
    """A job that is there is not said to be missing where the queue, host or job that the body names is."""
    ident = submit(world, options={"H": True})

    def asked(method: str, path: str, body: dict[str, Any]) -> tuple[int, str]:
        answer = world.client.request(method, f"{ROOT}/jobs/{path}", json=body, headers=world.bearer(ALICE))
        return answer.status_code, answer.json()["detail"]

    assert asked("POST", f"{ident}/switch", {"queue": "nowhere"}) == (422, "nowhere: No such queue")
    for options in ({"q": "nowhere"}, {"m": "nowhere"}, {"w": "done(99999)"}):
        assert asked("PATCH", ident, {"options": options})[0] == 422
    assert asked("PATCH", "99999", {"options": {"n": 2}})[0] == 404
    for what, body in (("switch", {"queue": "normal"}), ("move", {"top": True}), ("requeue", {}), ("resume", {})):
        assert asked("POST", f"99999/{what}", body)[0] == 404


def test_a_requeue_of_jobs_that_have_ended_takes_all_others_too() -> None:
    async def body() -> bytes:
        return b'{"ended": true}'

    class Told(Master):
        async def ask(self, frame: Frame, token: str = "", changes: bool = True) -> Answer:
            told.append(frame["states"])
            return {"results": [{"id": "5", "ok": True}]}

    told: list[object] = []
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "path_params": {"id": "5"}, "headers": headers}
    request = Request(scope)
    request.state.body = body
    asyncio.run(changes.changed("requeue", request, Told(""), Who("ann", "", "")))
    assert told == [["RUN", "USUSP", "SSUSP", "DONE", "EXIT"]]


def test_an_array_is_one_row_and_its_elements_are_below_it(world: PageWorld) -> None:
    ident = submit(world, options={"J": "wide[1-100000]", "H": True})
    row = next(row for row in get(world, "/jobs", search="wide")["jobs"])
    assert (row["kind"], row["elements"]["psusp"]) == ("array", 100_000)
    assert get(world, f"/jobs/{ident}/elements")["runs"] == [[1, 100_000, "PSUSP"]]
    page = get(world, "/jobs", array=ident, limit=2, sort="id")
    assert [one["id"] for one in page["jobs"]] == [f"{ident}[1]", f"{ident}[2]"]
    assert world.client.delete(f"{ROOT}/jobs/{ident}", headers=world.bearer(ALICE)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("GET", "/jobs/99999", None, 404, "is not found"),
        ("GET", "/jobs/x", None, 400, ""),
        ("GET", "/jobs?state=SLEEPY", None, 400, "SLEEPY: no state"),
        ("GET", "/jobs?cursor=abc", None, 400, "cursor"),
        ("GET", "/jobs?limit=0", None, 400, "limit"),
        ("GET", "/jobs?colour=red", None, 400, "no such parameter"),
        ("GET", "/jobs/1/output?all=true", None, 400, "all: no such parameter"),
        ("GET", "/jobs?user=" + "a" * 512, None, 400, "user: at most 511 characters"),
        ("GET", "/chart?from=0&search=" + "a" * 512, None, 400, "search: at most 511 characters"),
        ("GET", "/changes?after=" + "a" * 64, None, 400, "after: at most 63 characters"),
        ("DELETE", "/tokens?usr=alice", None, 400, "usr: no such parameter"),
        ("DELETE", "/tokens?user=bob&user=all", None, 400, "twice"),
        ("GET", "/jobs/" + "9" * 5000 + "/end", None, 400, "the number of a job"),
        ("GET", "/hosts/nowhere", None, 404, "Bad host name"),
        ("GET", "/queues/nowhere", None, 404, "No such queue"),
        ("GET", "/nowhere", None, 404, ""),
        ("POST", "/nowhere", {}, 404, "There is no such address"),
        ("POST", "/jobs/", {}, 404, "There is no such address"),
        ("GET", "/queues/", None, 404, "There is no such address"),
        ("DELETE", "/jobs/a%2fb", None, 404, "There is no such address"),
        ("PUT", "/jobs", None, 405, ""),
        ("POST", "/jobs", {"command": ""}, 400, "empty"),
        ("POST", "/jobs", {"comand": "true"}, 400, "comand"),
        ("POST", "/jobs", {"command": "true", "options": {"q": "nowhere"}}, 422, "No such queue"),
        ("POST", "/jobs", {"command": "true", "options": {"Ip": True}}, 400, "terminal"),
        ("POST", "/jobs", {"command": "true", "options": {"n": "many"}}, 422, "positive integer"),
        ("POST", "/jobs", {"command": "true", "cwd": "here"}, 400, "absolute"),
        ("POST", "/hosts/h1/close", {}, 404, "Bad host name"),
        ("POST", "/queues/normal/close", {}, 403, "permission denied"),
        ("POST", "/hosts/all/close", {}, 404, "all: the name of one host is expected"),
        ("POST", "/queues/all/close", {}, 404, "all: the name of one queue is expected"),
        ("DELETE", "/jobs/99999", None, 404, "No matching job"),
        ("DELETE", "/jobs/0", None, 404, "Job <0> is not found"),
        ("POST", "/jobs/00/kill", {}, 404, "Job <00> is not found"),
        ("POST", "/jobs/0/stop", {}, 404, "Job <0> is not found"),
        ("DELETE", "/jobs/%200", None, 404, "is not found"),
        ("POST", "/jobs/0%0a/stop", {}, 404, "is not found"),
        ("POST", "/jobs/kill", {"ids": ["99999", "\u20030 "]}, 404, "is not found"),
        ("POST", "/jobs/kill", {"ids": ["99999", "0"]}, 404, "Job <0> is not found"),
        ("POST", "/hosts/0/close", {}, 404, "Bad host name"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_a_problem(
    world: PageWorld, method: str, path: str, body: dict[str, Any] | None, status: int, words: str
) -> None:
    answer = world.client.request(method, ROOT + path, json=body, headers=world.bearer(BOB))
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert answer.json()["title"]


def test_a_group_of_hosts_is_no_host(world: PageWorld) -> None:
    def close(name: str) -> tuple[int, str]:
        answer = world.client.post(f"{ROOT}/hosts/{name}/close", json={}, headers=world.bearer(BOSS))
        return answer.status_code, answer.text

    facts = Facts(ncpus=1)
    world.feed(lambda _, now: [ev.HostJoined(at=now, host="one", facts=facts), ev.HostUp(at=now, host="one")])
    world.feed(lambda cluster, now: [ev.Configured(at=now, conf=replace(cluster.conf, host_groups=(("big", ("one",)),)))])
    status, told = close("big")
    assert status == 404
    assert "big: Bad host name" in told
    assert get(world, "/hosts/one")["row"]["status"] == "ok"
    assert close("one")[0] == 200


def test_a_method_that_an_address_has_not_is_told_which_it_has(world: PageWorld) -> None:
    assert "GET" in world.client.put(f"{ROOT}/overview", headers=world.bearer(BOB)).headers["allow"]


def test_a_body_that_is_no_json_is_refused(world: PageWorld) -> None:
    headers = world.bearer(ALICE)
    assert (
        world.client.post(f"{ROOT}/jobs", content=b"{", headers=headers | {"Content-Type": "application/json"}).status_code == 400
    )
    assert world.client.post(f"{ROOT}/jobs", content=b"{}", headers=headers | {"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.parametrize("route", [row for row in TABLE if row.word], ids=lambda row: row.name)
def test_a_record_is_what_openapi_says(world: PageWorld, route: Any) -> None:
    ident = submit(world, options={"H": True, **({"J": "a[1-3]"} if route.name == "elements" else {})})
    named = {"host": "h1", "queue": "normal"}.get(route.name, ident)
    answer = world.client.get(ROOT + route.path.replace("{id}", named), headers=world.bearer(BOSS))
    if route.name == "host":
        assert answer.status_code == 404  # no host has joined here
        return
    assert answer.status_code == 200, answer.text
    msgspec.json.decode(answer.content, type=route.answer)


def test_numbers_of_options_are_written_as_people_write_them(world: PageWorld) -> None:
    assert options_of({"M": 12345678.0, "n": 4, "W": 0.5, "x": 1e9}) == {"M": "12345678", "n": "4", "W": "0.5", "x": "1000000000"}
    ident = submit(world, options={"M": 12345678.0, "H": True})
    assert get(world, f"/jobs/{ident}")["mem_limit"] == 12345678


def test_openapi_names_every_route_and_resolves(world: PageWorld) -> None:
    document = world.client.get("/api/openapi.json").json()
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} == {
        (ROOT + row.path, row.method.lower()) for row in TABLE
    }
    schemas = document["components"]["schemas"]
    text = msgspec.json.encode(document).decode()
    for piece in text.split('"$ref":"#/components/schemas/')[1:]:
        assert piece.partition('"')[0] in schemas


def test_openapi_says_what_every_field_and_parameter_is(world: PageWorld) -> None:
    document = world.client.get("/api/openapi.json").json()
    operations = [(path, one) for path, methods in document["paths"].items() for one in methods.values()]
    mute = [(path, one["name"]) for path, row in operations for one in row["parameters"] if not one.get("description")]
    mute += [
        (name, field)
        for name, schema in document["components"]["schemas"].items()
        for field, one in schema.get("properties", {}).items()
        if not one.get("description")
    ]
    assert mute == []
    said = document["components"]["schemas"]
    assert said["JobRow"]["properties"]["id"]["description"] == "`123` or `123[4]`."
    assert said["JobRow"]["properties"]["queue"]["description"] == COMMON["queue"]
    used = {field for schema in said.values() for field in schema.get("properties", {})}
    assert set(COMMON) <= used


def test_who_is_not_signed_in_may_ask_whether_it_lives(world: PageWorld) -> None:
    assert world.client.get("/healthz").json() == {"page": "ok", "master": "ok"}


def test_a_script_is_asked_for_again_each_time_and_not_sent_again(world: PageWorld) -> None:
    answer = world.client.get("/static/page.js")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-cache")
    again = world.client.get("/static/page.js", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.headers["cache-control"], again.text) == (304, "no-cache", "")


def test_an_error_of_the_page_carries_the_headers_for_safety_too(world: PageWorld) -> None:
    app = make_app(world.settings, Master(world.settings.run), SignIn(world.settings, Master(world.settings.run)))

    async def broken(_: Request) -> Response:
        raise KeyError("secret")

    app.router.routes.insert(0, Route("/broken", broken))
    answer = TestClient(app, "http://127.0.0.1", raise_server_exceptions=False).get("/broken")
    assert (answer.status_code, answer.json()["detail"]) == (500, "internal error; the log of the page says more")
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS


def test_output_that_does_not_come_in_time_is_a_problem(world: PageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PEEK_PATIENCE", 0.0)
    answer = world.client.get(f"{ROOT}/jobs/1/output", headers=world.bearer(ALICE))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["detail"] == "The output cannot be read in time; bpeek shows it"
