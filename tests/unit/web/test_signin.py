"""Who asks: links, sessions, tokens and the site's reverse proxy; and what nobody gets in by."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from lavad.rpc.tokens import BAD
from tests.support.worlds.page import ALICE, BOB, BOSS, PageWorld
from tests.unit.cli.scripted_master import ScriptedMaster
from web.app import make_app
from web.master import Master
from web.settings import Settings
from web.signin import SignIn

SECRET = "a secret of the site's proxy"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[PageWorld]:
    with PageWorld(tmp_path) as made:
        yield made


def test_a_link_signs_in_and_its_session_changes_things_only_with_its_csrf_token(world: PageWorld) -> None:
    csrf = world.sign_in(ALICE)
    job = world.client.post("/api/v1/jobs", json={"command": "true", "options": {"H": True}}, headers={"X-CSRF-Token": csrf})
    assert job.status_code == 201
    path = job.headers["location"]
    assert world.client.get(path).json()["row"]["user"] == "alice"
    assert world.client.delete(path).status_code == 403
    assert world.client.delete(path, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    elsewhere = {"X-CSRF-Token": csrf, "Sec-Fetch-Site": "cross-site"}
    assert world.client.delete(path, headers=elsewhere).status_code == 403
    assert world.client.delete(path, headers={"X-CSRF-Token": csrf}).status_code == 200


@pytest.mark.parametrize(("site", "status"), [("none", 303), ("same-origin", 303), ("cross-site", 403), ("same-site", 403)])
def test_a_link_on_another_site_signs_nobody_in(world: PageWorld, site: str, status: int) -> None:
    link = world.token(BOB, "link")
    answer = world.client.get("/login", params={"link": link}, headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, "set-cookie" in answer.headers) == (status, status == 303)


def test_the_cookie_is_for_this_page_alone(world: PageWorld) -> None:
    answer = world.client.get("/login", params={"link": world.token(ALICE, "link")})
    cookie = answer.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("httponly", "samesite=lax", "path=/", "max-age="))
    assert "domain" not in cookie
    assert world.token(ALICE, "link") not in answer.headers["location"]


def test_with_tls_the_cookie_is_secure(tmp_path: Path) -> None:
    with PageWorld(tmp_path, url="https://127.0.0.1") as world:
        cookie = world.client.get("/login", params={"link": world.token(ALICE, "link")}).headers["set-cookie"]
        assert cookie.startswith("__Host-")
        assert "secure" in cookie.lower()


def test_a_session_that_is_signed_out_is_gone_from_the_browser(world: PageWorld) -> None:
    csrf = world.sign_in(ALICE)
    assert world.client.delete("/api/v1/session", headers={"X-CSRF-Token": csrf}).status_code == 204
    assert world.client.get("/api/v1/session").status_code == 401


@pytest.mark.parametrize("kind", ["nothing", "noise", "ended", "other key", "link"])
def test_nobody_gets_in_without_a_token_that_holds(world: PageWorld, kind: str) -> None:
    token = world.token(ALICE)
    given = {
        "nothing": {},
        "noise": {"Authorization": "Bearer x.y.z"},
        "ended": {"Authorization": f"Bearer {world.token(ALICE, 'api', 1e-9)}"},
        "other key": {"Authorization": f"Bearer {token[:-4]}AAAA"},
        "link": {"Authorization": f"Bearer {world.token(ALICE, 'link')}"},
    }[kind]
    answer = world.client.get("/api/v1/jobs", headers=given)
    assert answer.status_code == 401, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 401


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        ("The query was interrupted; try again", 503),
        ("lavad: internal error: KeyError; its log says more", 503),
        ("The master's store cannot be reached", 503),
        (BAD, 401),
        ("Bad request: a NUL character", 401),
        ("h1: Host is not a submission host", 403),
    ],
)
def test_a_token_that_lavad_could_not_read_is_not_called_invalid(tmp_path: Path, refused: str, status: int) -> None:
    """Programs end with 401, and ask again after 503."""
    settings = Settings(str(tmp_path), "127.0.0.1", 80, "")
    master = Master(settings.run)
    with ScriptedMaster(tmp_path / "lavad.sock", [{"refused": refused, "exit": 255}]):
        client = TestClient(make_app(settings, master, SignIn(settings, master)), "http://127.0.0.1")
        answer = client.get("/api/v1/queues", headers={"Authorization": "Bearer a.b.c"})
    assert answer.status_code == status, answer.text
    assert ("`lava web` prints" in answer.json()["detail"]) == (status == 401)
    assert (answer.headers.get("retry-after") == "1") == (status == 503)


def test_a_token_acts_as_its_user_whoever_the_page_runs_as(world: PageWorld) -> None:
    """The page's own account here is root; bob's token still cannot end alice's job, the administrator's can."""
    made = world.client.post("/api/v1/jobs", json={"command": "true", "options": {"H": True}}, headers=world.bearer(ALICE))
    path = made.headers["location"]
    denied = world.client.delete(path, headers=world.bearer(BOB))
    assert (denied.status_code, denied.json()["detail"]) == (403, "User permission denied")
    assert world.client.delete(path, headers=world.bearer(BOSS)).status_code == 200


def test_failures_from_one_address_are_counted(world: PageWorld) -> None:
    codes = [world.client.get("/api/v1/jobs", headers={"Authorization": "Bearer x"}).status_code for _ in range(12)]
    assert codes == [401] * 10 + [429] * 2
    assert world.client.get("/api/v1/jobs", headers=world.bearer(ALICE)).status_code == 200


def test_other_names_of_this_server_lead_nowhere(world: PageWorld) -> None:
    answer = world.client.get("/", headers={"Host": "rebound.example"})
    assert answer.status_code == 421
    assert world.client.get("/", headers={"Host": "localhost:1234"}).status_code == 200


def test_every_answer_carries_the_headers_for_safety(world: PageWorld) -> None:
    for path in ("/", "/api/v1/jobs", "/nothing", "/static/index.html"):
        headers = world.client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


PROXIED = {"X-Remote-User": "bob", "X-Lava-Proxy-Secret": SECRET}


def test_the_header_of_the_proxy_is_believed_with_its_secret_and_address_alone(tmp_path: Path) -> None:
    with PageWorld(tmp_path, proxies=("10.0.0.1",), proxy_secret=SECRET) as world:
        world.configure(lava_web_user=pwd.getpwuid(os.getuid()).pw_name)
        with world.browser("10.0.0.1") as proxy:
            session = proxy.get("/api/v1/session", headers=PROXIED)
            assert session.json()["user"] == "bob", session.text
            assert proxy.get("/api/v1/session", headers={**PROXIED, "X-Lava-Proxy-Secret": "x"}).status_code == 403
            body = {"command": "true", "options": {"H": True}}
            assert proxy.post("/api/v1/jobs", json=body, headers=PROXIED).status_code == 403
            csrf = {"X-CSRF-Token": session.json()["csrf"]}
            assert proxy.post("/api/v1/jobs", json=body, headers=PROXIED | csrf).status_code == 201
            assert proxy.get("/api/v1/session", headers=PROXIED | {"X-Remote-User": "root"}).status_code == 403
            assert proxy.get("/api/v1/session", headers=PROXIED | {"X-Remote-User": "boss"}).json()["is_admin"] is False
        assert world.client.get("/api/v1/session", headers=PROXIED).status_code == 401


def test_without_lava_web_user_the_page_speaks_for_nobody(tmp_path: Path) -> None:
    with PageWorld(tmp_path, proxies=("10.0.0.1",), proxy_secret=SECRET) as world, world.browser("10.0.0.1") as proxy:
        assert proxy.get("/api/v1/session", headers=PROXIED).status_code == 403


def test_what_is_called_back_opens_neither_the_page_nor_rest(world: PageWorld) -> None:
    csrf = world.sign_in(ALICE)
    bearer = world.bearer(ALICE)
    with world.browser() as program:
        assert program.get("/api/v1/overview", headers=bearer).status_code == 200
        listed = _tokens(program, bearer)
        assert sorted(row["kind"] for row in listed) == ["api", "link", "session"]
        theirs = world.bearer(BOB)
        mine = next(row["id"] for row in listed if row["kind"] == "api")
        assert program.delete(f"/api/v1/tokens/{mine}", headers=theirs).status_code == 403
        assert program.get("/api/v1/tokens?user=alice", headers=theirs).status_code == 403
        assert program.delete("/api/v1/tokens/none", headers=theirs).status_code == 404
        assert _tokens(program, world.bearer(BOSS), "alice") == [{**row, "this": False} for row in listed]
        assert world.client.delete(f"/api/v1/tokens/{mine}", headers={"X-CSRF-Token": csrf}).status_code == 200
        # the page knew both, and asks lavad all the same
        assert program.get("/api/v1/jobs", headers=bearer).status_code == 401
        assert world.client.get("/api/v1/jobs").status_code == 200
        assert program.delete("/api/v1/tokens?user=alice", headers=world.bearer(BOSS)).status_code == 200
        assert world.client.get("/api/v1/queues").status_code == 401


def _tokens(browser: TestClient, headers: dict[str, str], user: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = browser.get("/api/v1/tokens", params={"user": user}, headers=headers).json()["tokens"]
    return found


def test_a_session_makes_a_token_for_programs_and_a_program_makes_none(world: PageWorld) -> None:
    csrf = {"X-CSRF-Token": world.sign_in(BOB)}
    body = {"name": "laptop", "hours": 2}
    assert world.client.post("/api/v1/tokens", json=body).status_code == 403
    made = world.client.post("/api/v1/tokens", json=body, headers=csrf)
    assert made.status_code == 201, made.text
    assert "no-store" in made.headers["cache-control"]
    (row,) = [row for row in _tokens(world.client, {}) if row["name"] == "laptop"]
    assert (row["kind"], row["used"], row["this"], row["ends"]) == ("api", None, False, made.json()["ends"])
    assert [row["kind"] for row in _tokens(world.client, {}) if row["this"]] == ["session"]
    with world.browser() as program:
        bearer = {"Authorization": f"Bearer {made.json()['token']}"}
        assert program.get("/api/v1/session", headers=bearer).json()["user"] == "bob"
        assert program.post("/api/v1/tokens", json=body, headers=bearer).status_code == 403
        (row,) = [row for row in _tokens(program, bearer) if row["this"]]
        assert (row["name"], row["used"] is None) == ("laptop", False)
    for wrong in ({"hours": 0}, {"hours": 169}, {"name": "n" * 65}):
        assert world.client.post("/api/v1/tokens", json=wrong, headers=csrf).status_code == 400
    assert world.client.post("/api/v1/tokens", json={"name": "a\nb"}, headers=csrf).status_code == 422


def test_who_signs_out_leaves_no_session_behind(world: PageWorld) -> None:
    csrf = world.sign_in(ALICE)
    cookies = dict(world.client.cookies)
    assert world.client.delete("/api/v1/session", headers={"X-CSRF-Token": csrf}).status_code == 204
    with world.browser() as thief:
        thief.cookies.update(cookies)
        assert thief.get("/api/v1/jobs").status_code == 401
