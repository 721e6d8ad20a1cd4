"""One ask to the master over the local socket, and its answer.

Rule: a command waits for the master as long as it takes. An ask that changes something keeps its uuid over all tries, so that
the master does it once. A standby says that it is none, so the command goes on to the next socket.

`_socket` is imported instead of `socket`, which pulls in selectors and enum and doubles the start-up time.
"""

from __future__ import annotations

import os
import time
from _socket import AF_UNIX, SO_SNDTIMEO, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket
from _struct import Struct
from errno import EACCES, EPERM, EPROTOTYPE

from cli.client.context import Context, Fail, Refused
from cli.client.frames import LARGEST_ANSWER, LARGEST_ASK, decode, pack
from config.lsfconf import RUNDIR, find_envdir, read_lsf_conf
from proto.numbers import find_number
from proto.version import PROTOCOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from proto.answers import Answer, Reply

    class Receiver(Protocol):
        """Takes the frames of an answer."""

        def begin(self) -> None: ...

        def take(self, answer: Reply) -> bool: ...


OF_MASTER = "-master"
"""After the name of the run folder: that of lavad, where it runs under an account of its own."""
BATCH = "lsb_init: Failed in an LSF library call"
BASE = "ls_initdebug"
"""What LSF's commands of the batch system, and of the base system, put before a failure to read lsf.conf."""
STILL_TRYING = "batch system daemon not responding ... still trying\n"
TELL_EVERY = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 1.0
PATIENCE = 60.0
LONGEST_PATH = 107
TURN, ANY_TIME = Struct("ll").pack(int(TELL_EVERY), 0), Struct("ll").pack(0, 0)
"""How long a place in the queue of a socket is waited for, as the kernel takes it."""
LONG = 1 << 17
DONE, AWAY, LOST = "done", "away", "lost"


def new_uuid() -> str:
    """A fresh uuid4 in hex."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    return raw.hex()


def read_conf(context: Context, caller: str = BATCH) -> dict[str, str]:
    """The site's lsf.conf; raises Fail, which begins with ``caller`` where there is none."""
    envdir = find_envdir(context.environ)
    path = os.path.join(envdir, "lsf.conf") if envdir else ""
    if not path or not os.path.exists(path):
        if context.environ.get("LAVA_SOCKET"):
            return {}
        raise Fail(f"{caller}: Unable to open file lsf.conf")
    try:
        return read_lsf_conf(path)
    except OSError as error:
        raise Fail(f"{path}: {error.strerror}") from None


class TooLarge(Fail):
    """A request is larger than a frame may be; nothing of it was sent."""


class OneAnswer:
    """The answer to an ask that gets one frame."""

    def __init__(self) -> None:
        self.answer: Reply = {}

    def begin(self) -> None:
        """A new try begins."""

    def take(self, answer: Reply) -> bool:
        """Keep the frame; it is the last."""
        self.answer = answer
        return True


class WholeOutput:
    """The output of a query, kept until it is complete: a broken try prints nothing. Long output is printed as it comes."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.pieces: list[tuple[str, str]] = []
        self.size = 0
        self.printed = False
        self.status = 0

    def begin(self) -> None:
        """Drop what a broken try has brought; raises Fail where part of it is printed already."""
        if self.printed:
            raise Fail("The connection to the batch system was lost: the list is not complete; try again")
        self.pieces, self.size = [], 0

    def take(self, answer: Reply) -> bool:
        """Take one frame; True for the last. Raises Fail where it is a refusal."""
        if "exit" in answer and "refused" not in answer:
            self.status = int(answer["exit"])
            return True
        stream, text = _piece(answer)
        self.pieces.append((stream, text))
        self.size += len(text)
        if self.size > LONG:
            self.show()
            self.printed = True
        return False

    def show(self) -> int:
        """Print the pieces in order; the exit status."""
        for stream, text in self.pieces:
            (self.context.out if stream == "out" else self.context.err)(text)
        self.pieces = []
        return self.status


class StreamedOutput:
    """Output that is printed as it comes; after a broken try what was printed already is skipped."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.status = 0
        self._shown = {"out": 0, "err": 0}
        self._at = {"out": 0, "err": 0}

    def begin(self) -> None:
        """The master starts again at the beginning."""
        self._at = {"out": 0, "err": 0}

    def take(self, answer: Reply) -> bool:
        """Take one frame; True for the last. Raises Fail where it is a refusal."""
        if "exit" in answer and "refused" not in answer:
            self.status = int(answer["exit"])
            return True
        self._show(*_piece(answer))
        return False

    def _show(self, stream: str, text: str) -> None:
        known = self._shown[stream] - self._at[stream]
        self._at[stream] += len(text)
        if known < len(text):
            say = self.context.out if stream == "out" else self.context.err
            say(text[known:] if known > 0 else text)
            self._shown[stream] = self._at[stream]


def _piece(answer: Reply) -> tuple[str, str]:
    """-> ("out" or "err", the text). Raises Fail where the frame is no piece of output."""
    if "out" in answer:
        return "out", str(answer["out"])
    if "err" in answer:
        return "err", str(answer["err"])
    raise _refusal(answer)


def _refusal(answer: Reply) -> Fail:
    if "refused" in answer:
        refused = Refused(str(answer["refused"]), int(answer.get("exit", 255)))
        refused.retry = int(answer.get("retry") or 0)
        return refused
    return Fail("lavad sent an answer that this command does not understand")


class Client:
    """Asks the master over the local socket; keeps the connection from one ask to the next."""

    def __init__(self, context: Context, conf: dict[str, str]) -> None:
        self.context = context
        self._given = context.environ.get("LAVA_SOCKET", "")
        self._rundir = conf.get("LAVA_RUNDIR") or RUNDIR
        self.tries = find_number(context.environ.get("LSB_NTRIES") or conf.get("LSB_NTRIES", "")) or 0
        """How many rounds of tries there are; 0: no limit."""
        self._socket: Socket | None = None
        self._path = ""
        self._frame: Mapping[str, object] = {}
        self._sent = False

    def ask(self, frame: Mapping[str, object], patience: float | None = PATIENCE) -> Answer:
        """The master's answer. ``patience``: seconds that a socket may be silent, None: no limit. Raises Refused, Fail."""
        receiver = OneAnswer()
        self._exchange(frame, receiver, patience)
        answer = receiver.answer
        if isinstance(answer.get("ok"), dict):
            return answer["ok"]
        raise _refusal(answer)

    def change(self, frame: Mapping[str, object]) -> Answer:
        """The answer to an ask that changes something: done once, however often it is sent. Raises Refused, Fail."""
        return self.ask({**frame, "uuid": new_uuid()})

    def query(self, frame: Mapping[str, object]) -> int:
        """Print what the master renders; its exit status."""
        output = WholeOutput(self.context)
        self._exchange(frame, output, PATIENCE)
        return output.show()

    def text_of(self, frame: Mapping[str, object], quiet: bool = False, patience: float = PATIENCE) -> str:
        """What a query puts on stdout; its stderr is printed unless ``quiet``. Raises Refused with the stderr where it fails.

        ``patience``: seconds that a socket may be silent.
        """
        output = WholeOutput(self.context)
        self._exchange(frame, output, patience)
        if output.status:
            raise Refused("".join(text for stream, text in output.pieces if stream == "err").rstrip("\n"), output.status)
        for stream, text in output.pieces:
            if stream == "err" and not quiet:
                self.context.err(text)
        return "".join(text for stream, text in output.pieces if stream == "out")

    def stream(self, frame: Mapping[str, object]) -> int:
        """Print what the master sends, as it comes; its exit status."""
        stream = StreamedOutput(self.context)
        self._exchange(frame, stream, None)
        return stream.status

    def _exchange(self, frame: Mapping[str, object], receiver: Receiver, patience: float | None) -> None:
        told = None
        pause = FIRST_PAUSE
        tries = 0
        self._frame, self._sent = {**frame, "v": PROTOCOL}, False
        self.context.acts()
        while not self._sent_round(receiver, patience):
            tries += 1
            if tries == self.tries:
                raise Fail("batch system daemon not responding")
            now = time.monotonic()
            if told is None or now - told >= TELL_EVERY:
                self._tell()
                told = now
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    def _tell(self) -> None:
        self.context.err(STILL_TRYING)

    def _sent_round(self, receiver: Receiver, patience: float | None) -> bool:
        """Try the open connection, then each socket; one that breaks is tried twice, as a new master may have taken it over."""
        if self._socket is not None and self._attempt(self._path, receiver, patience) == DONE:
            return True
        for path in self._sockets():
            outcome = self._attempt(path, receiver, patience)
            if outcome == LOST:
                outcome = self._attempt(path, receiver, patience)
            if outcome == DONE:
                return True
        return False

    def _sockets(self) -> list[str]:
        if self._given:
            return [self._given]
        found = [(folder, name) for folder in (self._rundir, self._rundir + OF_MASTER) for name in _names(folder)]
        masters = [(folder, name) for folder, name in found if name.startswith("lavad") and name.endswith(".sock")]
        masters.sort(key=lambda one: (len(one[1]), one[1]))
        agents = sorted(one for one in found if one[1].startswith("agent") and one[1].endswith(".sock"))
        return [os.path.join(folder, name) for folder, name in masters + agents]

    def _attempt(self, path: str, receiver: Receiver, patience: float | None) -> str:
        # "again" is always there, so that what fitted once fits again
        data = _packed({**self._frame, "again": self._sent})
        link = self._socket if path == self._path else None
        self._socket = None
        link = link or _connected(path)
        if link is None:
            return AWAY
        receiver.begin()
        self._sent = True
        link.settimeout(patience)
        try:
            link.sendall(data)
        except OSError:
            return LOST
        reader = _Reader(link, patience, self._tell)
        while True:
            try:
                answer = _receive(reader)
            except TimeoutError:  # whoever holds this socket has stopped or hangs: another may serve
                return AWAY
            except (OSError, EOFError):
                return LOST
            if "standby" in answer or "later" in answer:
                return AWAY
            if receiver.take(answer):
                self._socket, self._path = link, path
                return DONE


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _packed(frame: Mapping[str, object]) -> bytes:
    data = pack(frame)
    if len(data) > LARGEST_ASK:
        raise TooLarge(f"The request is too large: {len(data)} bytes, at most {LARGEST_ASK}")
    if b"\\ud" in data:  # a character beyond the first 65,536, or a byte that is no text
        _check_text(frame)
    return data


def _check_text(value: object) -> None:
    """Raises Fail where a word, or a file's name, has bytes that are not UTF-8: the master would take none of the request."""
    if isinstance(value, str):
        from cli.client.texts import is_text, printable

        if not is_text(value):
            raise Fail(f"{printable(value)[:200]}: This holds bytes that are not UTF-8")
    elif isinstance(value, dict):
        for item in value.items():
            _check_text(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _check_text(item)


def _connected(path: str) -> Socket | None:
    """A connection, or None where nobody accepts. Raises Fail where the user may not connect."""
    link = Socket(AF_UNIX, SOCK_STREAM)
    # not by a time-out of Python's: with one, a socket whose queue is full sends its callers away at once
    link.setsockopt(SOL_SOCKET, SO_SNDTIMEO, TURN)
    folder = -1
    try:
        if len(os.fsencode(path)) > LONGEST_PATH:
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        link.connect(path)
        link.setsockopt(SOL_SOCKET, SO_SNDTIMEO, ANY_TIME)
        return link
    except OSError as error:
        link.close()
        if error.errno in (EACCES, EPERM, EPROTOTYPE):
            raise Fail(f"{path}: {error.strerror}") from None
        return None
    finally:
        if folder >= 0:
            os.close(folder)


class _Reader:
    """Bytes of a connection. Each silence of TELL_EVERY seconds is told, unless it may be of any length."""

    def __init__(self, link: Socket, patience: float | None, tell: Callable[[], object]) -> None:
        """``patience``: seconds after which a silence is an OSError; None: never."""
        self._link, self._patience, self._tell = link, patience, tell
        link.settimeout(patience if patience is None else min(patience, TELL_EVERY))

    def exactly(self, size: int) -> bytes:
        """So many. Raises OSError, or EOFError where the connection ends before."""
        parts = []
        while size:
            part = self._some(min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _some(self, most: int) -> bytes:
        silent = 0.0
        while True:
            try:
                return self._link.recv(most)
            except TimeoutError:
                silent += TELL_EVERY
                if self._patience is None or silent >= self._patience:
                    raise
                self._tell()


def _receive(reader: _Reader) -> Reply:
    size = int.from_bytes(reader.exactly(4), "big")
    if size > LARGEST_ANSWER:
        raise Fail("lavad sent an answer that this command does not understand")
    answer: Reply | None
    try:
        answer = decode(reader.exactly(size).decode("utf-8"))
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Fail("lavad sent an answer that this command does not understand")
    return answer
