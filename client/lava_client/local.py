"""One connection to lava's local socket: asks go out as frames of JSON, one at a time, and each is answered.

Rule: an ask that changes something has a uuid, and keeps it over all tries, so that the master does it once. A standby sends the
ask on to the next socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import threading
import time
import uuid
from typing import TYPE_CHECKING, Any

from lava_client.checkpoint import probed
from lava_client.errors import LavaError, Refused, Unavailable
from lava_client.link import CLOSED, LARGEST_ANSWER, LARGEST_ASK, Closed
from lava_client.site import find_sockets, read_conf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROTOCOL = 2
"""As in lava's ``proto/version.py``."""
LONGEST_PATH = 107
SILENCE = 60.0
"""Seconds that a daemon may be silent, beyond what an ask is to wait."""
TURN, ANY_TIME = struct.pack("ll", 10, 0), struct.pack("ll", 0, 0)
"""How long a place in the queue of a socket is waited for (10 s), as the kernel takes it."""
WIDTH = 120
"""Characters of a line of prose."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0


class LocalLink:
    """The Link of a process on a host of the cluster; the kernel says who asks.

    ``timeout``: seconds for which a master that is away is waited for, None: for ever.
    """

    def __init__(self, environ: Mapping[str, str], timeout: float | None = None) -> None:
        self._environ = dict(environ)
        self._conf = read_conf(self._environ)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._closed = threading.Event()

    def ask(self, frame: Mapping[str, object], wait: float = 0.0) -> dict[str, Any]:
        """The answer. ``wait``: seconds that the master is asked to wait. Raises Refused, Unavailable, Closed."""
        pieces = self._exchange({**frame, "v": PROTOCOL}, wait)
        answer = pieces[-1].get("ok")
        if not isinstance(answer, dict):
            raise LavaError("lavad sent an answer that this client does not understand")
        return answer

    def change(self, frame: Mapping[str, object]) -> dict[str, Any]:
        """The answer to an ask that changes something, which is done once. Raises as ``ask`` does."""
        while True:
            try:
                return self.ask({**frame, "uuid": uuid.uuid4().hex})
            except Refused as refused:
                if not refused.retry or self._closed.wait(refused.retry):
                    raise

    def submit(self, frame: Mapping[str, Any]) -> dict[str, Any]:
        """As Link has it."""
        with probed(frame, self._conf) as folder:
            return self.change({**frame, **folder, "ask": "submit"})

    def submit_many(self, frame: Mapping[str, Any], commands: Sequence[str]) -> list[dict[str, Any]]:
        """As Link has it."""
        common = {name: value for name, value in frame.items() if name not in ("command", "script")}
        with probed(frame, self._conf) as folder:
            jobs = [{"command": command, **folder} for command in commands]
            answer = self.change({**common, "ask": "bulk", "jobs": jobs})
        rows: list[dict[str, Any]] = answer["results"]
        return rows

    def kill(self, ids: Sequence[str]) -> list[str]:
        """As Link has it."""
        answer = self.change({"ask": "kill", "jobs": {"ids": list(ids)}})
        return [str(row.get("id", "")) for row in answer.get("results", ()) if not row.get("why")]

    def rows(self, ids: Sequence[str], fields: str) -> list[dict[str, str]]:
        """As Link has it."""
        text, _ = self._listed("bjobs", list(ids), {"o": fields, "json": True})
        rows: list[dict[str, str]] = json.loads(text)["RECORDS"] if text else []
        return [row for row in rows if "ERROR" not in row]

    def slots(self) -> int:
        """As Link has it."""
        text = self._query("bhosts", [], {"o": "max", "json": True})
        return sum(int(row["MAX"]) for row in json.loads(text)["RECORDS"] if str(row["MAX"]).isdecimal())

    def why(self, job: str) -> str:
        """As Link has it."""
        return self._query("why", [job], {}, WIDTH)

    def start(self, job: str) -> float | None:
        """As Link has it."""
        at: float | None = json.loads(self._query("api", ["why", job], {}))["latest"]
        return at

    def peek(self, job: str) -> str:
        """As Link has it."""
        text, said = self._printed({"ask": "peek", "job": job}, "bpeek")
        if said:
            raise Refused(said)
        return text

    def end(self, job: int) -> dict[str, Any]:
        """As Link has it."""
        return self.ask({"ask": "wait", "job": job})

    def changes(self, after: str, wait: float) -> dict[str, Any]:
        """As Link has it."""
        return self.ask({"ask": "changes", "after": after, "wait": wait}, wait)

    def idle(self) -> None:
        """Each ask for changes ends by itself."""

    def _query(self, command: str, words: list[str], options: dict[str, object], width: int = 10_000) -> str:
        """What a listing command prints on stdout. Raises Refused with what it prints on stderr where it fails."""
        text, said = self._listed(command, words, options, width)
        if said:
            raise Refused(said)
        return text

    def _listed(self, command: str, words: list[str], options: dict[str, object], width: int = 10_000) -> tuple[str, str]:
        frame = {"ask": "query", "command": command, "words": words, "options": options, "width": width}
        return self._printed(frame, command)

    def _printed(self, frame: Mapping[str, object], command: str) -> tuple[str, str]:
        """What a command prints, and why it prints nothing where it fails, as where it knows no such job."""
        pieces = self._exchange({**frame, "v": PROTOCOL}, 0.0)
        text = "".join(str(piece["out"]) for piece in pieces if "out" in piece)
        if text or not pieces[-1].get("exit"):
            return text, ""
        said = "".join(str(piece["err"]) for piece in pieces if "err" in piece).strip()
        return "", said or f"{command} ended with {pieces[-1]['exit']}"

    def close(self) -> None:
        """Close the connection; an ask under way raises Closed."""
        self._closed.set()
        link = self._socket
        if link is not None:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._drop()

    def forget(self) -> None:
        """In the child of a fork: the connection is the parent's."""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        link, self._socket = self._socket, None
        if link is not None:
            link.close()

    def _exchange(self, frame: Mapping[str, object], wait: float) -> list[dict[str, Any]]:
        data = _packed(frame)
        again = data
        if "uuid" in frame:
            again = _packed({**frame, "again": True})
        began, pause = time.monotonic(), FIRST_PAUSE
        with self._lock:
            while True:
                for path in self._paths():
                    if self._closed.is_set():
                        raise Closed(CLOSED)
                    pieces = self._tried(path, data, wait)
                    if pieces is not None:
                        return pieces
                    data = again
                if self._timeout is not None and time.monotonic() - began >= self._timeout:
                    raise Unavailable("batch system daemon not responding")
                self._closed.wait(pause)
                pause = min(pause * 1.5, LONGEST_PAUSE)

    def _paths(self) -> list[str]:
        """Where to ask: the open connection first ("")."""
        found = find_sockets(self._environ, self._conf)
        return ["", *found] if self._socket is not None else found

    def _tried(self, path: str, data: bytes, wait: float) -> list[dict[str, Any]] | None:
        """The frames of an answer; None where there is nobody, or the connection broke. Raises Refused."""
        if not path:
            link = self._socket
        else:
            self._drop()
            link = self._socket = _connected(path)
            if self._closed.is_set():  # by somebody who saw no connection yet
                self._drop()
                raise Closed(CLOSED)
        if link is None:
            return None
        link.settimeout(SILENCE + wait)
        pieces = []
        whole = False
        try:
            link.sendall(data)
            while True:
                answer = _receive(link)
                if "standby" in answer or "later" in answer:
                    return None
                pieces.append(answer)
                whole = "refused" in answer or "ok" in answer or "exit" in answer
                if "refused" in answer:
                    raise Refused(str(answer["refused"]).strip(), retry=float(answer.get("retry") or 0))
                if whole:
                    return pieces
        except (OSError, EOFError):
            return None
        finally:
            if not whole:  # what comes yet, of an ask that was interrupted, would be taken for the answer to the next
                self._drop()

    def _drop(self) -> None:
        link, self._socket = self._socket, None
        if link is not None:
            link.close()


def _packed(frame: Mapping[str, object]) -> bytes:
    data = json.dumps(frame, separators=(",", ":")).encode("ascii")
    if len(data) > LARGEST_ASK:
        raise Refused(f"The request is too large: {len(data)} bytes, at most {LARGEST_ASK}")
    return len(data).to_bytes(4, "big") + data


def _connected(path: str) -> socket.socket | None:
    """A connection; None where nobody accepts. Raises Unavailable where the user may not connect."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = -1
    try:
        # not by a time-out of Python's: with one, a socket whose queue is full sends its callers away at once
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, TURN)
        if len(os.fsencode(path)) > LONGEST_PATH:
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        link.connect(path)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, ANY_TIME)
        return link
    except PermissionError as error:
        link.close()
        raise Unavailable(f"{path}: {error.strerror}") from None
    except OSError:
        link.close()
        return None
    finally:
        if folder >= 0:
            os.close(folder)


def _receive(link: socket.socket) -> dict[str, Any]:
    size = int.from_bytes(_exactly(link, 4), "big")
    if size > LARGEST_ANSWER:
        raise LavaError("lavad sent an answer that this client does not understand")
    answer = json.loads(_exactly(link, size))
    if not isinstance(answer, dict):
        raise LavaError("lavad sent an answer that this client does not understand")
    return answer


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = link.recv(min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
