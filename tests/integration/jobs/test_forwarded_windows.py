"""bsub -XF and -IX on a real cluster: programs of a job draw on the display of whoever submitted it, from afar over TLS."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

COOKIE = "00112233445566778899aabbccddeeff"
SIZE = 3 << 20
HOSTS = ["host1", "host2"]  # the host of submission, by a socket of its own; another host, by TLS
CLIENT = f"""
import os, socket, struct, sys
host, number = os.environ["DISPLAY"].split(":")
entry = open(os.environ["XAUTHORITY"], "rb").read()
name, cookie = b"MIT-MAGIC-COOKIE-1", entry[-16:]
with socket.create_connection((host, 6000 + int(number.split(".")[0]))) as link:
    link.sendall(b"l\\0" + struct.pack("<HHHHH", 11, 0, len(name), 16, 0) + name + bytes(2) + cookie)
    link.sendall(bytes({SIZE}))
    came = 0
    while came < {SIZE}:
        came += len(link.recv(1 << 16))
print("drawn", came)
"""


class Server(threading.Thread):
    """A display that takes SIZE bytes of a client with the right cookie and sends as many back."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.name = f"127.0.0.1:{self.listener.getsockname()[1] - 6000}"
        self.setups: list[bytes] = []
        self.start()

    def run(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with link, contextlib.suppress(OSError):
            self.setups.append(link.recv(48, socket.MSG_WAITALL))
            for _ in range(SIZE >> 16):
                link.recv(1 << 16, socket.MSG_WAITALL)
            link.sendall(bytes(SIZE))
            link.recv(1)


@pytest.fixture
def display() -> Iterator[Server]:
    one = Server()
    yield one
    one.listener.close()


pytestmark = pytest.mark.cluster(hosts=2)


@pytest.fixture
def bin_of(tmp_path: Path, display: Server) -> Path:
    """A folder with what stands for xauth, which knows the cookie of the display, and the client."""
    program = tmp_path / "xauth"
    program.write_text(f'#!/bin/sh\n[ "$*" = "list {display.name}" ] && echo "{display.name}  MIT-MAGIC-COOKIE-1  {COOKIE}"\n')
    program.chmod(0o755)
    (tmp_path / "client.py").write_text(CLIENT)
    return tmp_path


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("option", ["-XF -I", "-XF -Ip", "-IX"])
def test_a_program_draws_on_the_users_display(cluster: Cluster, display: Server, bin_of: Path, host: str, option: str) -> None:
    command = f"'echo $XAUTHORITY; python3 {bin_of}/client.py'"
    done = cluster.run(f"export DISPLAY={display.name} PATH={bin_of}:$PATH; bsub {option} -m {host} {command}")
    authority, drawn = done.stdout.splitlines()[1:]
    assert drawn == f"drawn {SIZE}"
    setup = b"l\0" + struct.pack("<HHHHH", 11, 0, 18, 16, 0) + b"MIT-MAGIC-COOKIE-1\0\0" + bytes.fromhex(COOKIE)
    assert display.setups == [setup], "the user's own cookie, which the job has never seen"
    assert not Path(authority).exists()


def test_a_display_that_is_away_fails_the_program_alone(cluster: Cluster, bin_of: Path) -> None:
    with socket.socket() as nobody:  # who has the port, and does not listen
        nobody.bind(("127.0.0.1", 0))
        display = f"127.0.0.1:{nobody.getsockname()[1] - 6000}"
        script = f"export DISPLAY={display}; bsub -XF -I 'python3 {bin_of}/client.py 2> /dev/null || exit 5'"
        done = cluster.run(script, ok=False)
    assert done.returncode == 5
    assert f"bsub: display {display}: Connection refused\n" in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("-XF true", "-XF: only interactive jobs have a display: give -I, -Ip or -Is with it. Job not submitted."),
        ("-XF -I -r true", "-XF and -r cannot be given together. Job not submitted."),
        ("-IX -K true", "-IX and -K cannot be given together. Job not submitted."),
        ("-IX -Is true", "-IX and -Is cannot be given together. Job not submitted."),
        ("-XF -I true", "-XF: DISPLAY is not set: there is no display that could be forwarded to. Job not submitted."),
    ],
)
def test_what_cannot_be_forwarded(cluster: Cluster, words: str, why: str) -> None:
    done = cluster.run(f"unset DISPLAY; bsub {words}", ok=False)
    assert (done.returncode, done.stderr.strip()) == (255, why)
