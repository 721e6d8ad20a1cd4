"""Horovod's rendezvous as its ranks use it: put, get until it is there, delete when connected; strangers are bounded."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.mpi.meeting import FirstHost
from agent.starter.mpi.rendezvous import MAX_BODY, Rendezvous, Values
from agent.starter.system.watch import Watch

SECRET = "k" * 64


@pytest.fixture
def port() -> Iterator[int]:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    watch = Watch()
    server = Rendezvous(sock, SECRET, FirstHost(None).ask, watch)
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            watch.wait(0.01)

    thread = threading.Thread(target=serve)
    thread.start()
    yield sock.getsockname()[1]
    over.set()
    thread.join()
    server.close()


def ask(port: int, verb: str, path: str, body: bytes | None = None, key: str | None = None) -> tuple[int, bytes]:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.request(verb, f"/{SECRET}:{port}{path}" if key is None else f"{key}{path}", body)
    answer = link.getresponse()
    found = (answer.status, answer.read())
    link.close()
    return found


@pytest.mark.parametrize("key", ["", "/", "/wrong:1", f"/{'k' * 63}:1", f"/:{'k' * 64}", f"/x/{'k' * 64}:1"])
def test_who_does_not_know_the_key_is_told_nothing_and_changes_nothing(port: int, key: str) -> None:
    assert ask(port, "PUT", "/global/0", b"true") == (200, b"")
    for verb, body in (("GET", None), ("PUT", b"forged"), ("DELETE", None)):
        assert ask(port, verb, "/global/0", body, key=key) == (403, b"")
    assert ask(port, "GET", "/global/0") == (200, b"true")


def test_ranks_meet(port: int) -> None:
    """What one put another gets; before that, 404, and it asks again."""
    assert ask(port, "GET", "/global/0") == (404, b"")
    assert ask(port, "PUT", "/global/0", b"\x00addr\r\n\r\n") == (200, b"")
    assert ask(port, "GET", "/global/0") == (200, b"\x00addr\r\n\r\n")
    assert ask(port, "PUT", "/global/1", b"b" * 200_000) == (200, b"")
    assert ask(port, "GET", "/global/1")[1] == b"b" * 200_000
    assert ask(port, "GET", "/local_h1/1")[0] == 404
    assert ask(port, "DELETE", "/global/0") == (200, b"")
    assert ask(port, "GET", "/global/0")[0] == 200
    assert ask(port, "DELETE", "/global/1") == (200, b"")
    assert ask(port, "GET", "/global/0")[0] == 404


def test_strangers_are_bounded(port: int) -> None:
    assert ask(port, "POST", "/global/0", b"x")[0] == 400
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    link.putrequest("PUT", f"/{SECRET}:{port}/global/0")
    link.putheader("Content-Length", str(MAX_BODY + 1))
    link.endheaders()
    assert link.getresponse().status == 413
    link.close()
    with socket.create_connection(("127.0.0.1", port), 10) as raw:
        raw.sendall(b"G" * 20_000)
        assert raw.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", port), 10):
        assert ask(port, "GET", "/a/b")[0] == 404


KEY = st.sampled_from([b"/a/0", b"/a/1", b"/b/0", b"/c"])


@given(st.lists(st.tuples(st.sampled_from([b"PUT", b"GET", b"DELETE"]), KEY, st.binary(max_size=20)), max_size=40))
def test_what_is_kept_is_what_was_put(asks: list[tuple[bytes, bytes, bytes]]) -> None:
    values = Values()
    for verb, path, body in asks:
        status, _ = values.request(verb, path, body)
        assert status in (200, 404)
        kept = sum(len(key) + len(value) for scope in values._scopes.values() for key, value in scope.items())
        assert values._size == kept
