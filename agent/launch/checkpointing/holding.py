"""Holds copies of generations for jobs of other hosts, in a folder that only the agent's account can enter: ``USER/JOB/gen-N``.

``run`` is a process beside the agent and ends with it. A token names the job and its user, and is signed for this host alone by
lavad: who has one reaches the copies of that job and nothing else. What is received is counted, hashed and kept or removed;
nothing in it is looked into. It belongs to its user, so that quotas count it.

Rule: before the token is known nothing is read but one line, and no file is touched; a name in a path comes from a token alone.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import resource
import shutil
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, cast

from agent.launch.checkpointing import copies
from agent.launch.checkpointing.asked import CheckpointError
from agent.launch.checkpointing.copies import ARCHIVE, NEW, Facts, Hashed, number_in
from agent.launch.checkpointing.holder import GET, LENGTH, PUT, SECONDS, receive, send
from agent.launch.checkpointing.staging import expected
from agent.launch.checkpointing.writing import sync_folder
from agent.starter.wire.link import memory_file
from proto.daemon.cpu_precedence import give_way
from proto.names import NoAnswer, find_user

MOST_STRANGERS = 64
"""Connections that have shown no token yet: of more the oldest is closed."""
MOST_OF_JOB = 4
MOST_OF_USER = 32
"""Connections of all jobs of a user at a time; more come later."""
GREETING_SECONDS = 10.0
"""How long who connects may take to show a token."""
TURN_SECONDS = 20.0
"""How long a copy waits for the end of the one before it of the same job: less than the sender waits for an answer."""
SPARE_SHARE = 0.05
"""Of the disk: so much stays free."""
LONGEST_PIECE = 1 << 20
MOST_KEPT = 1000
ACCEPT_PAUSE = 0.2
"""Seconds until the next one is let in where there is no room for another."""
_CHECKED = 64 << 20
"""Bytes after which the room is looked at again."""


class Busy(CheckpointError):
    """It does not serve now, and may do so in a while."""


class Holding:
    """What is held in ``folder``. ``secret``: with which tokens are signed; ``most``: bytes for each user, 0: as the disk has."""

    def __init__(self, folder: str, secret: bytes, most: int = 0) -> None:
        self._folder = folder
        self._secret = secret
        self._most = most
        self._lock = threading.Condition()
        self._receiving: set[str] = set()
        self._serving: Counter[str] = Counter()
        """Connections of the folder of each job, and of each user."""
        self._came: Counter[str] = Counter()
        """Bytes that have come for each user."""
        self._strangers: dict[socket.socket, None] = {}

    def welcome(self, sock: socket.socket) -> None:
        """Somebody has connected, and is a stranger until a token is shown."""
        sock.settimeout(GREETING_SECONDS)
        with self._lock:
            self._strangers[sock] = None
            if len(self._strangers) > MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)

    def leave(self, sock: socket.socket) -> None:
        """A connection ends, or is a stranger's no longer."""
        with self._lock:
            self._strangers.pop(sock, None)

    def serve(self, file: IO[bytes], sock: socket.socket, known: Callable[[], None]) -> None:
        """One connection; ``known`` is called when it has shown a token."""
        request = receive(file)
        user, job = self._shown(str(request.get("token", "")))
        known()
        sock.settimeout(SECONDS)
        folder = os.path.join(self._folder, user, job)
        try:
            if request.get("do") == PUT:
                with self._counted(user, folder, alone=True):
                    answer = self._put(file, folder, user, request)
                send(file, answer)  # another one may come as soon as this is read
                return
            with self._counted(user, folder, alone=False):
                if request.get("do") == GET:
                    self._get(file, folder, number_in(request, "generation"))
                else:
                    raise CheckpointError("it does not know what is wanted")
        except CheckpointError as e:
            send(file, {"why": str(e), "later": isinstance(e, Busy)})
        except OSError as e:
            if e.filename is None and not isinstance(e, ConnectionError | TimeoutError | ssl.SSLError):
                send(file, {"why": f"{self._folder}: {e.strerror or e}"})
            elif e.filename is not None:
                send(file, {"why": f"{e.filename}: {e.strerror}"})

    def _shown(self, token: str) -> tuple[str, str]:
        """(user, job) of a token; PermissionError where it is none of this host's."""
        sign, _, named = token.partition(" ")
        if not hmac.compare_digest(sign.encode(), hmac.digest(self._secret, named.encode(), "sha256").hex().encode()):
            raise PermissionError("no token of this host")
        job, _, user = named.partition(" ")
        if not _is_name(user) or not _is_name(job):
            raise PermissionError("no name of a folder")
        return user, job

    @contextlib.contextmanager
    def _counted(self, user: str, folder: str, alone: bool) -> Iterator[None]:
        """A connection of a job; one at a time brings something (``alone``), and the next one waits for its turn."""
        with self._lock:
            if self._serving[folder] >= MOST_OF_JOB:
                raise Busy("too many connections of this job are open there")
            if self._serving[user] >= MOST_OF_USER:
                raise Busy(f"too many connections of user {user} are open there")
            self._serving[folder] += 1
            self._serving[user] += 1
            # who broke off and comes again may be here before the end of the connection that it left is seen
            mine = not alone or self._lock.wait_for(lambda: folder not in self._receiving, TURN_SECONDS)
            if alone and mine:
                self._receiving.add(folder)
        try:
            if not mine:
                raise CheckpointError("another copy of this job is on its way there")
            yield
        finally:
            with self._lock:
                for one in (folder, user):
                    self._serving[one] -= 1
                    if not self._serving[one]:
                        del self._serving[one]
                if alone and mine:
                    self._receiving.discard(folder)
                    self._lock.notify_all()

    def _get(self, file: IO[bytes], folder: str, number: int) -> None:
        path = os.path.join(folder, f"gen-{number}")
        facts = copies.facts_of(path)
        try:
            archive = open(os.path.join(path, ARCHIVE), "rb", buffering=0)  # noqa: SIM115
        except OSError:
            raise CheckpointError(f"it has no generation {number} of the job") from None
        with archive:
            send(file, {"facts": facts})
            shutil.copyfileobj(archive, file, LONGEST_PIECE)
            file.flush()

    def _put(self, file: IO[bytes], folder: str, user: str, told: Facts) -> Facts:
        """What is to be answered: the copy is whole, or was ``there`` before."""
        number, made, size = (number_in(told, name) for name in ("generation", "made", "bytes"))
        if not 0 <= number < 10**9 or size < 0:
            raise CheckpointError("that is no generation")
        os.makedirs(folder, 0o700, exist_ok=True)
        there = copies.facts_of(os.path.join(folder, f"gen-{number}"))
        if there and there.get("made") == made:
            return {"there": number_in(copies.archive_in(there), "size")}
        before = copies.latest_first(found := copies.all_in(folder))[:1]
        most = self._room(user, expected(size, found[before[0]] if before else {}))
        send(file, {})
        unfinished = copies.begin(folder, number)
        try:
            received = self._receive(file, os.path.join(unfinished, ARCHIVE), user, most)
            if receive(file) != received.listed():
                raise CheckpointError("what came is not what was sent: its SHA-256 is another")
            host = str(told.get("host", ""))[:256]
            copies.commit(
                folder, number, unfinished, {copies.ARCHIVE: received.listed()}, {"made": made, "bytes": size, "host": host}
            )
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        sync_folder(os.path.dirname(folder))
        sync_folder(self._folder)  # the user's may be new
        kept = min(max(1, number_in(told, "kept")), MOST_KEPT)
        copies.keep(folder, copies.latest_first(copies.all_in(folder)), kept)
        return {}

    def _receive(self, file: IO[bytes], path: str, user: str, most: int) -> Hashed:
        """``most``: as ``self._came`` may be then, as jobs of one user may bring copies at once."""
        with os.fdopen(os.open(path, NEW, 0o600), "wb") as target:
            if os.geteuid() == 0:
                with contextlib.suppress(NoAnswer):
                    if (who := find_user(user)) is not None:
                        os.chown(target.fileno(), who.uid, who.gid)
            seen, checked = Hashed(target=target), 0
            while size := LENGTH.unpack(_exactly(file, LENGTH.size))[0]:
                if size > LONGEST_PIECE:
                    raise CheckpointError("a piece of it is too large")
                with self._lock:
                    self._came[user] += size
                    if self._came[user] > most:
                        raise CheckpointError("it is larger than all that there is for it")
                seen.write(_exactly(file, size))
                if seen.size > checked + _CHECKED:
                    checked = seen.size
                    copies.check_space(self._folder, self._spare(), "what must stay free")
            target.flush()
            os.fsync(target.fileno())
        return seen

    def _room(self, user: str, size: int) -> int:
        """The most that ``self._came`` may be with a copy; CheckpointError where less than ``size`` is free."""
        spare, came = self._spare(), self._came[user]
        copies.check_space(self._folder, size + spare, f"a copy, with {spare >> 20} MB that stay free,")
        found = os.statvfs(self._folder)
        free = found.f_bavail * found.f_frsize - spare
        if not self._most:
            return came + free
        left = self._most - copies.bytes_in(os.path.join(self._folder, user))
        if left < size:
            mb = 1 << 20
            raise CheckpointError(f"user {user} has {max(0, left) / mb:.0f} MB left there, and a copy needs {size / mb:.0f} MB")
        return came + min(free, left)

    def _spare(self) -> int:
        found = os.statvfs(self._folder)
        return int(found.f_blocks * found.f_frsize * SPARE_SHARE)


def jobs_in(folder: str) -> list[str]:
    """The jobs of which copies are held: ``USER/JOB``."""
    with contextlib.suppress(FileNotFoundError):
        users = [user for user in os.listdir(folder) if os.path.isdir(os.path.join(folder, user))]
        return sorted(f"{user}/{job}" for user in users for job in os.listdir(os.path.join(folder, user)))
    return []


def drop(folder: str, jobs: list[str]) -> int:
    """Remove the copies of jobs that ``jobs_in`` has named; how many there were."""
    count = 0
    for user, _, job in (one.partition("/") for one in jobs):
        if _is_name(user) and _is_name(job) and os.path.isdir(path := os.path.join(folder, user, job)):
            shutil.rmtree(path, ignore_errors=True)
            count += 1
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(path))
    return count


def drop_unfinished(folder: str) -> None:
    """Remove what a process that was killed has left of copies: it is no job's, and counts for its user."""
    for job in jobs_in(folder):
        with contextlib.suppress(OSError):
            copies.drop_unfinished(os.path.join(folder, job))


def run(fd: int) -> None:
    """Serve on the listening socket of this descriptor until standard input ends, whose first line is the configuration."""
    config = json.loads(sys.stdin.buffer.readline())
    listener = socket.socket(fileno=fd)
    threading.Thread(target=_end_with_input, daemon=True).start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    cert, key = memory_file(config["cert"]), memory_file(config["key"])
    context.load_cert_chain(f"/proc/self/fd/{cert}", f"/proc/self/fd/{key}")
    give_way()
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    drop_unfinished(config["folder"])
    holding = Holding(config["folder"], bytes.fromhex(config["secret"]), int(config["most"]))
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            time.sleep(ACCEPT_PAUSE)
            continue
        holding.welcome(sock)
        threading.Thread(target=_serve, args=(holding, context, sock), daemon=True).start()


def _serve(holding: Holding, context: ssl.SSLContext, sock: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError, EOFError, RecursionError):  # it has gone, or is none that may come
        try:
            tls = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            holding.leave(sock)
            holding.welcome(tls)
            with tls:
                tls.do_handshake()
                with tls.makefile("rwb") as file:
                    holding.serve(cast("IO[bytes]", file), tls, partial(holding.leave, tls))
        finally:
            holding.leave(sock)
            sock.close()


def _end_with_input() -> None:
    while sys.stdin.buffer.read(1 << 16):
        pass
    os._exit(0)


def _exactly(file: IO[bytes], size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _is_name(text: str) -> bool:
    return bool(text) and len(text) < 200 and not text.startswith(".") and "/" not in text and text.isprintable()
