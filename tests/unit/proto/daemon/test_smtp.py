"""Mail through a server, where a host has no sendmail: what is said to it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

from proto.daemon import smtp


class Server:
    """Takes one message."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.heard: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        link, _ = self._listener.accept()
        with link, link.makefile("rw", encoding="utf-8", newline="\r\n") as talk:
            talk.write("220 here\n")
            talk.flush()
            inside = False
            for line in talk:
                self.heard.append(line.strip("\r\n"))
                inside = (inside or self.heard[-1] == "data") and self.heard[-1] != "."
                if not inside or self.heard[-1] == "data":
                    talk.write("354 go on\n" if inside else "250 well\n")
                    talk.flush()

    def end(self) -> list[str]:
        self._thread.join(10)
        self._listener.close()
        return self.heard


def run(server: str, message: bytes) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-I", smtp.__file__, server, "boss", "ann@x,bob@x"]
    return subprocess.run(words, input=message, capture_output=True, check=False, timeout=60)


def test_a_message_is_sent() -> None:
    server = Server()
    assert run(server.address, b"To: ann@x\nSubject: Job 1\n\nwell\n.\n").returncode == 0
    heard = server.end()
    # Python 3.13 writes all of it small
    assert [line.lower() for line in heard if line.startswith("rcpt")] == ["rcpt to:<ann@x>", "rcpt to:<bob@x>"]
    assert heard[heard.index("data") + 1 :][:5] == ["To: ann@x", "Subject: Job 1", "", "well", ".."]


def test_a_server_that_is_not_there_is_said() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    done = run(address, b"x")
    assert done.returncode == 75
    assert done.stderr.startswith(address.encode())
