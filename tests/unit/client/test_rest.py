"""The link over REST: what is sent again and with which key, what answers mean, and a stream that goes on where it broke."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lava_client.errors import LavaError, NotSignedIn, Refused, Unavailable
from lava_client.link import Closed
from lava_client.rest import RestLink
from lava_client.service import Service, Token
from tests.support.wait import SLOW
from tests.unit.client.test_follow import Told

LONG = 20 * SLOW
OK = {"id": "7", "queue": "normal", "notices": []}


class Asked(NamedTuple):
    """A request that the page got."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Answer(NamedTuple):
    """What it says; ``body`` bytes as they are, else JSON. ``cut``: the connection breaks behind it."""

    status: int = 200
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False


NOTHING = Answer(0, cut=True)


class Page:
    """A page that answers the n-th request with the n-th answer, all later ones with the last."""

    def __init__(self, *answers: Answer | Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        page = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                page.connections += 1

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = Asked(self.command, self.path, dict(self.headers), json.loads(data or b"null"))
                answer = answers[min(len(page.asked), len(answers) - 1)]
                page.asked.append(asked)
                said = answer(asked) if callable(answer) else answer
                self.close_connection = said.cut
                if not said.status:
                    return
                body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                self.send_response(said.status)
                for name, value in said.headers:
                    self.send_header(name, value)
                if not said.cut:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Page:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(LONG)

    def service(self, token: str = "t", path: str = "") -> Service:
        return Service("127.0.0.1", self._server.server_address[1], "/lava", None, Token(token, path))


@pytest.fixture
def link_to() -> Iterator[Callable[..., RestLink]]:
    made: list[RestLink] = []

    def link(page: Page, timeout: float | None = LONG, **given: str) -> RestLink:
        made.append(RestLink(page.service(**given), timeout))
        return made[-1]

    yield link
    for one in made:
        one.close()


def problem(status: int, detail: str, *headers: tuple[str, str]) -> Answer:
    return Answer(status, {"title": "T", "status": status, "detail": detail}, headers)


def news(ident: str, *rows: dict[str, Any], lost: bool = False) -> bytes:
    return f"id: {ident}\nevent: changes\ndata: {json.dumps({'after': ident, 'lost': lost, 'changes': rows})}\n\n".encode()


def test_a_change_is_sent_again_with_its_key_until_it_is_answered(link_to: Callable[..., RestLink]) -> None:
    busy = problem(429, "MAX_PEND_JOBS has been reached", ("Retry-After", "0"))
    with Page(NOTHING, Answer(502, b"no"), problem(503, "away"), busy, Answer(201, OK)) as page:
        link = link_to(page)
        assert link.submit({"command": "true"}) == {"job": 7, "queue": "normal"}
        assert link.submit({"command": "true"})["job"] == 7
    *first, other = [asked.headers["Idempotency-Key"] for asked in page.asked]
    assert len(first) == 5
    assert len(set(first)) == 1
    assert other not in first
    assert {asked.path for asked in page.asked} == {"/lava/api/v1/jobs"}
    assert page.asked[0].headers["Authorization"] == "Bearer t"
    assert page.connections == 2


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (problem(422, "nosuch: No such queue"), Refused, "^nosuch: No such queue$"),
        (problem(403, "User permission denied"), Refused, "denied"),
        (problem(401, "The token is not valid or has ended"), NotSignedIn, "has ended"),
        (Answer(302, b"", (("Location", "https://elsewhere"),)), LavaError, "answered with 302"),
        (Answer(500, b"?"), LavaError, "answered with 500"),
        (Answer(404, b"<html>"), LavaError, "answered with 404"),
        (Answer(200, b"[]"), LavaError, "does not understand"),
    ],
)
def test_what_goes_wrong_is_the_same_exception_as_on_the_local_socket(
    link_to: Callable[..., RestLink], answer: Answer, kind: type[Exception], text: str
) -> None:
    with Page(answer) as page, pytest.raises(kind, match=text):
        link_to(page).submit({"command": "true"})


def test_a_page_that_is_away_is_waited_for_as_long_as_was_said(link_to: Callable[..., RestLink]) -> None:
    with Page(Answer(503, b"")) as page, pytest.raises(Unavailable, match="not responding"):
        link_to(page, timeout=0.01).slots()
    with pytest.raises(Unavailable, match="not responding"):
        link_to(page, timeout=0.01).slots()
    link = link_to(page)
    link.close()
    with pytest.raises(Closed):
        link.slots()


def test_a_page_without_tls_is_not_waited_for_over_https() -> None:
    with Page(NOTHING) as page:
        link = RestLink(page.service()._replace(context=ssl.create_default_context()), LONG)
        with pytest.raises(Unavailable, match="does not speak TLS"):
            link.slots()
        link.close()


def test_who_closes_a_link_while_it_connects_does_not_wait_for_an_answer(
    link_to: Callable[..., RestLink], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is there only when the other thread has looked for one to shut down."""
    answered = threading.Event()

    def answer(_: Asked) -> Answer:
        answered.wait(LONG)
        return NOTHING

    with Page(answer) as page, ThreadPoolExecutor(1) as pool:
        link = link_to(page)
        closing = threading.Thread(target=link.close)
        connect = http.client.HTTPConnection.connect

        def closed_meanwhile(connection: http.client.HTTPConnection) -> None:
            closing.start()
            assert link._closed.wait(LONG)
            connect(connection)

        monkeypatch.setattr(http.client.HTTPConnection, "connect", closed_meanwhile)
        asked = pool.submit(link.slots)
        with pytest.raises(Closed):
            asked.result(LONG)
        closing.join(LONG)
        assert not closing.is_alive()
        answered.set()


def test_a_token_that_its_file_has_renewed_is_taken(link_to: Callable[..., RestLink], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text("first")

    def renewed(_: Asked) -> Answer:
        file.write_text("second")
        return problem(401, "it has ended")

    with Page(renewed, Answer(200, {"slots": 4})) as page:
        assert link_to(page, token="", path=str(file)).slots() == 4
    assert [asked.headers["Authorization"] for asked in page.asked] == ["Bearer first", "Bearer second"]


def test_a_stream_goes_on_after_the_last_change_that_was_read() -> None:
    def served(asked: Asked) -> Answer:
        if asked.path.startswith("/lava/api/v1/changes?"):
            return Answer(200, {"after": "c.1", "lost": False, "changes": []})
        after = asked.headers["Last-Event-ID"]
        told = {
            "c.1": b": alive\n\n" + news("c.2", {"job": "1", "state": "RUN", "host": "h", "status": None}),
            "c.2": b": alive\n\n",
            "c.3": news("c.3"),
        }[after]
        if after == "c.2" and streams.count("c.2"):
            told = news("c.3", {"job": "1", "state": "EXIT", "status": 9, "reason": "TERM_OWNER", "by": "root"})
        streams.append(after)
        return Answer(200, told, (("Content-Type", "text/event-stream"),), cut=True)

    streams: list[str] = []
    with Page(served) as page, Told(lambda: RestLink(page.service())) as told:
        asks = RestLink(page.service())
        told.follower.begin(asks)
        told.follow("1")
        assert told.next("1").state == "RUN"
        ended = told.next("1")
        assert (ended.code, ended.reason, ended.by) == (137, "TERM_OWNER", "root")
        asks.close()
    assert streams[:3] == ["c.1", "c.2", "c.2"]


def test_jobs_of_a_token_that_is_taken_no_more_end_with_the_reason() -> None:
    def served(asked: Asked) -> Answer:
        if len(page.asked) == 1:
            return Answer(200, {"after": "c.1", "lost": False, "changes": []})
        return problem(401, "The token is not valid or has ended")

    page = Page(served)
    with page, Told(lambda: RestLink(page.service())) as told:
        asks = RestLink(page.service())
        told.follower.begin(asks)
        told.follow("1")
        gone = told.next("1")
        asks.close()
    assert gone.state == "GONE"
    assert "has ended" in gone.why
