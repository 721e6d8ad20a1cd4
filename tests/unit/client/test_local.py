"""The connection to a local socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lava_client import LavaError, local
from lava_client.link import Closed
from lava_client.local import LocalLink
from tests.support.full_socket import Connecting, FullSocket
from tests.support.wait import SLOW
from tests.unit.cli.scripted_master import Frame, ScriptedMaster

ANSWER = b'{"ok":{"job":7}}'


def test_a_place_in_the_queue_of_a_socket_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others in front, however many, are no master that is away: not for one that waits for none, either."""
    connecting = Connecting()
    link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}, timeout=0.0)
    with ThreadPoolExecutor(1) as pool, FullSocket(tmp_path / "s") as full:
        monkeypatch.setattr(socket, "socket", connecting.kind)
        answer = pool.submit(link.ask, {"ask": "kill"})
        connecting.waits()
        with full.next() as other:
            other.recv(1 << 16)
            other.sendall(len(ANSWER).to_bytes(4, "big") + ANSWER)
        assert answer.result(30) == {"job": 7}
    link.close()


def test_who_closes_a_link_while_it_connects_does_not_wait_for_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is there only when the other thread has looked for one to shut down."""
    link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)})
    connected = local._connected
    closing = threading.Thread(target=link.close)

    def closed_meanwhile(path: str) -> socket.socket | None:
        found = connected(path)
        closing.start()
        assert link._closed.wait(30)
        return found

    monkeypatch.setattr(local, "_connected", closed_meanwhile)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(link.ask, {"ask": "changes"})
            with pytest.raises(Closed):
                asked.result(30)
    closing.join(30)
    assert not closing.is_alive()


INTERRUPTED = """
import os, signal, time
from lava_client.local import LocalLink
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may ignore it
link = LocalLink(os.environ)
print(link.ask({"ask": "before", "pid": os.getpid()})["of"])
try:
    link.ask({"ask": "first", "pid": os.getpid()})
    time.sleep(30)
except KeyboardInterrupt:
    print(link.ask({"ask": "second"})["of"])
"""


def test_what_comes_of_an_ask_that_was_interrupted_answers_no_other(tmp_path: Path) -> None:
    """As by Ctrl-C in a notebook, whose process lives on."""

    def answered(frame: Frame) -> list[Frame]:
        if frame["ask"] == "first":
            os.kill(frame["pid"], signal.SIGINT)
        return [{"ok": {"of": frame["ask"]}}]

    environ = {**os.environ, "LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)}
    words = [sys.executable, "-c", INTERRUPTED]
    with ScriptedMaster(tmp_path / "s", answered, at_once=True):
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60 * SLOW, check=False)
    assert (done.stdout, done.stderr) == ("before\nsecond\n", "")


def test_an_answer_that_is_too_large_answers_no_other_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LARGEST_ANSWER", 1_000)
    plans: list[list[Frame]] = [[{"out": "x" * 2_000}, {"ok": {"of": "first"}}], [{"ok": {"of": "second"}}]]
    with ScriptedMaster(tmp_path / "s", *plans):
        link = LocalLink({"LAVA_SOCKET": str(tmp_path / "s"), "LSF_ENVDIR": str(tmp_path)})
        with pytest.raises(LavaError):
            link.ask({"ask": "first"})
        assert link.ask({"ask": "second"}) == {"of": "second"}
        link.close()
