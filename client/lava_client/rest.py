"""A link over REST, from afar: one connection that is kept, and one stream of the changes of the user's jobs.

Rule: what changes something carries an Idempotency-Key, and keeps it over all tries. The stream goes on after the last change
that was read, whoever had to be started again meanwhile.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import ssl
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from lava_client.errors import LavaError, NotSignedIn, Refused, Unavailable
from lava_client.link import CLOSED, LARGEST_ANSWER, LARGEST_ASK, Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lava_client.service import Service

T = TypeVar("T")
_inherited: list[object] = []
"""Connections of the process that this one was forked from: a thread of that process may have been reading, and the lock that it
held is never released here, so they are neither closed nor collected."""
ROOT = "/api/v1"
SILENCE = 60.0
"""Seconds that the page may be silent; its streams say every 15 that they live."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
LONGEST_WAIT = 60.0
"""Seconds to wait for what the page says is to be asked again later."""
AWAY = (502, 503, 504)
LATER = (409, 429)
"""A job has not ended yet; too many requests, or a queue that takes no more jobs now."""


class RestLink:
    """The Link of a process anywhere, which acts as the user of its token.

    ``timeout``: seconds for which a page or master that is away is waited for, None: for ever.
    """

    def __init__(self, service: Service, timeout: float | None = None) -> None:
        self._service = service
        self._timeout = timeout
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._kept: http.client.HTTPConnection | None = None
        self._asking: http.client.HTTPConnection | None = None
        """The connection whose answer is waited for."""
        self._stream: tuple[http.client.HTTPConnection, http.client.HTTPResponse] | None = None
        self._place = ""
        """The cursor of the last change that the stream has told."""

    def submit(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """As Link has it."""
        made = self._change("/jobs", frame)
        return {"job": int(made["id"]), "queue": made["queue"]}

    def submit_many(self, frame: Mapping[str, Any], commands: Sequence[str]) -> list[dict[str, Any]]:
        """As Link has it."""
        common = {name: value for name, value in frame.items() if name != "command"}
        made = self._change("/jobs/bulk", {**common, "commands": list(commands)})
        return [{**row, "job": row["id"]} for row in made["results"]]

    def kill(self, ids: Sequence[str]) -> list[str]:
        """As Link has it."""
        return [str(row["id"]) for row in self._change("/jobs/kill", {"ids": list(ids)})["results"] if not row["why"]]

    def rows(self, ids: Sequence[str], fields: str) -> list[dict[str, str]]:
        """As Link has it."""
        rows = self._asked("POST", "/jobs/listing", {"ids": list(ids), "fields": fields})["records"]
        return [row for row in rows if "ERROR" not in row]

    def slots(self) -> int:
        """As Link has it."""
        return int(self._asked("GET", "/overview")["slots"])

    def why(self, job: str) -> str:
        """As Link has it."""
        return self._exchange("GET", f"/jobs/{quote(job, safe='')}/explanation").decode()

    def start(self, job: str) -> float | None:
        """As Link has it."""
        at: float | None = self._asked("GET", f"/jobs/{quote(job, safe='')}/why")["latest"]
        return at

    def peek(self, job: str) -> str:
        """As Link has it."""
        return self._exchange("GET", f"/jobs/{quote(job, safe='')}/output?whole=true").decode(errors="replace")

    def end(self, job: int) -> dict[str, Any]:
        """As Link has it."""
        return self._asked("GET", f"/jobs/{job}/end")

    def changes(self, after: str, wait: float) -> dict[str, Any]:
        """As Link has it. With ``wait`` from the stream, which stays open until ``idle``."""
        if not wait:
            return _known(self._asked("GET", "/changes?" + urlencode({"after": after})))
        with self._lock:
            _drop(self._kept)
            self._kept = None
            try:
                if self._stream is None or self._place != after:
                    self._open(after)
                found = self._next()
            except (OSError, http.client.HTTPException, EOFError, ValueError, KeyError):
                self.idle()
                if self._closed.wait(FIRST_PAUSE):
                    raise Closed(CLOSED) from None
                found = None
        return found or {"after": after, "lost": False, "changes": []}

    def idle(self) -> None:
        """Close the stream."""
        stream, self._stream = self._stream, None
        if stream is not None:
            _drop(stream[0])

    def close(self) -> None:
        """As Link has it."""
        self._closed.set()
        for link in (self._asking, self._kept, self._stream and self._stream[0]):
            if link is not None and link.sock is not None:
                with contextlib.suppress(OSError):
                    link.sock.shutdown(socket.SHUT_RDWR)
        with self._lock:
            _drop(self._kept)
            self._kept = None
            self.idle()

    def forget(self) -> None:
        """As Link has it."""
        self._lock, self._closed = threading.Lock(), threading.Event()
        inherited = self._kept, self._stream, self._asking
        self._kept = self._stream = self._asking = None
        for link in {inherited[0], inherited[1] and inherited[1][0], inherited[2]}:
            if link is not None and link.sock is not None:
                os.close(link.sock.detach())
        _inherited.append(inherited)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _change(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._asked("POST", path, body, uuid.uuid4().hex)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> dict[str, Any]:
        try:
            answer = json.loads(self._exchange(method, path, body, key))
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise LavaError("the page sent an answer that this client does not understand")
        return answer

    def _exchange(self, method: str, path: str, body: Mapping[str, Any] | None = None, key: str = "") -> bytes:
        """The body of the answer; asked again until there is one. Raises as Link does."""
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode("ascii")
        if data is not None and len(data) > LARGEST_ASK:
            raise Refused(f"The request is too large: {len(data)} bytes, at most {LARGEST_ASK}")
        headers = {"Idempotency-Key": key} if key else {}
        with self._lock:
            return self._until(lambda: self._once(method, path, data, headers))

    def _until(self, attempt: Callable[[], T]) -> T:
        """What ``attempt`` gives; it is made again while the page or the master is away."""
        began, pause = time.monotonic(), FIRST_PAUSE
        while True:
            if self._closed.is_set():
                raise Closed(CLOSED)
            try:
                return attempt()
            except _Again as again:
                seconds = again.seconds
            except (OSError, http.client.HTTPException) as error:
                if why := _why_never(error):
                    raise Unavailable(f"{self._service.url}: {why}") from None
                seconds = 0.0
            if self._timeout is not None and not seconds and time.monotonic() - began >= self._timeout:
                raise Unavailable("batch system daemon not responding")
            self._closed.wait(seconds or pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _once(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> bytes:
        try:
            answer = self._sent(method, path, data, headers)
            body = _body(answer)
        except BaseException:
            _drop(self._kept)
            self._kept = None
            raise
        if answer.will_close:
            _drop(self._kept)
            self._kept = None
        self._judge(answer, body)
        return body

    def _sent(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """The answer to a request on the kept connection; on another where that has been closed meanwhile."""
        if self._kept is not None:
            try:
                return self._request(self._kept, method, path, data, headers)
            except (OSError, http.client.HTTPException):
                _drop(self._kept)
        self._kept = self._connection()
        return self._request(self._kept, method, path, data, headers)

    def _request(
        self, link: http.client.HTTPConnection, method: str, path: str, data: bytes | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        service = self._service
        sent = {"Authorization": f"Bearer {service.token.text}", "User-Agent": "lava-client", **headers}
        if data is not None:
            sent["Content-Type"] = "application/json"
        self._asking = link
        try:
            link.request(method, service.prefix + ROOT + path, data, sent)
            if self._closed.is_set():  # by somebody who saw no connection yet
                raise Closed(CLOSED)
            return link.getresponse()
        finally:
            self._asking = None

    def _connection(self) -> http.client.HTTPConnection:
        service = self._service
        if service.context is None:
            return http.client.HTTPConnection(service.host, service.port, timeout=SILENCE)
        return http.client.HTTPSConnection(service.host, service.port, timeout=SILENCE, context=service.context)

    def _judge(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        """Return where the request was answered. Raises _Again where it is to be made again, else as Link does."""
        status = answer.status
        if status < 300:
            return
        said = _detail(body)
        if status == 401:
            if self._service.token.is_renewed():
                raise _Again(FIRST_PAUSE)
            raise NotSignedIn(f"{self._service.url}: {said or 'the token is not valid'}")
        if status in AWAY:
            raise _Again(0.0)
        if status in LATER:
            after = answer.getheader("Retry-After") or "1"
            raise _Again(min(float(after) if after.isdecimal() else 1.0, LONGEST_WAIT))
        if 400 <= status < 500 and said:
            raise Refused(said)
        raise LavaError(f"{self._service.url} answered with {status}{said and ': ' + said}")

    # -- the stream ----------------------------------------------------------------------------------------------------

    def _open(self, after: str) -> None:
        """Begin a stream after this cursor; waits while the page or the master is away."""
        self.idle()

        def opened() -> None:
            link = self._connection()
            try:
                headers = {"Accept": "text/event-stream", "Last-Event-ID": after}
                answer = self._request(link, "GET", "/changes/events", None, headers)
                if answer.status != 200:
                    self._judge(answer, _body(answer))
            except BaseException:
                link.close()
                raise
            self._stream, self._place = (link, answer), after

        self._until(opened)

    def _next(self) -> dict[str, Any] | None:
        """The next changes; None where the stream only says that it lives, or ends. Raises EOFError, OSError, HTTPException."""
        if self._stream is None:
            return None
        found: dict[str, str] = {}
        while True:
            line = self._stream[1].readline().rstrip(b"\r\n").decode()
            if not line:
                break
            name, _, value = line.partition(": ")
            found[name] = value
        if not found:
            raise EOFError
        if found.get("event") == "problem":
            self.idle()
        if found.get("event") != "changes":
            return None
        self._place = found["id"]
        return _known(json.loads(found["data"]))


class _Again(Exception):
    """To be asked again after so many seconds; 0: after a pause, while there is patience."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = max(seconds, 0.0)


def _body(answer: http.client.HTTPResponse) -> bytes:
    data = answer.read(LARGEST_ANSWER + 1)
    if len(data) > LARGEST_ANSWER:
        raise LavaError("the page sent an answer that this client does not understand")
    return data


def _known(answer: dict[str, Any]) -> dict[str, Any]:
    """Changes as the local socket has them: a status is there only for what has ended with one."""
    rows = [{name: value for name, value in row.items() if value is not None} for row in answer["changes"]]
    return {**answer, "changes": rows}


def _detail(body: bytes) -> str:
    """What a problem (RFC 9457) says; "" where it is none."""
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(body).get("detail") or "")
    return ""


def _why_never(error: Exception) -> str:
    """Why it is of no use to try again; "" where the page may only be away."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER":
        return "what listens there does not speak TLS; a page without a certificate has an http address on its own machine"
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        return str(error.strerror)
    return ""


def _drop(link: http.client.HTTPConnection | None) -> None:
    if link is not None:
        link.close()
