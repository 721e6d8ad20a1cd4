"""The process that holds copies of checkpoints of jobs on other hosts (LAVA_CHKPNT_COPY_DIR), and what is removed of them.

It listens once a master has given it this host's key and certificate, and ends with the agent. Where it dies it is started again.
Rule: the agent opens no copy; it lists the folders, and removes those that no job has needed for a while.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import socket
from collections.abc import Callable, Iterable

from agent.launch import checkpoints
from agent.launch.checkpointing import holding
from agent.launch.site import Site
from agent.starter.system import folders
from agent.starter.wire import link
from proto import agent_pb2 as pb
from proto.daemon.workers import Workers
from proto.localsocket import why_not_kept

log = logging.getLogger("lava-agent")

LOOK_PAUSE = 60.0
"""Seconds between two looks into the folder, each of which is told to the master."""
LINGER = 3600.0
"""Seconds for which copies stay that no job needs."""
RESTART_PAUSE = 1.0
BIND_TRIES, BIND_PAUSE = 10, 0.1
_PORT_FILE, _LOCK_FILE = ".port", ".lock"


class Holding:
    """Of one host. ``port``: where it listens, 0: this host holds no copies."""

    def __init__(self, site: Site) -> None:
        above = site.settings.lava_chkpnt_copy_dir
        self.folder = os.path.join(above, site.host) if above else ""
        self.port = 0
        self._address = site.address
        self._most = site.settings.lava_chkpnt_copy_max << 20
        self._listener: socket.socket | None = None
        self._lock = -1
        self._config = b""
        self._changed = asyncio.Event()
        self._workers = Workers("copies of checkpoints")
        self._held: list[str] = []
        self._to_tell = False
        self._over: dict[str, float] = {}
        """Copies that no job needs, and since when (CLOCK_BOOTTIME)."""
        self._drop: list[str] = []

    async def listen(self) -> None:
        """Take the previous port, if it is free, so that jobs that know it find it; without a folder do nothing."""
        if not self.folder:
            return
        path = os.path.join(self.folder, _PORT_FILE)
        try:
            os.makedirs(os.path.dirname(self.folder), exist_ok=True)
            if why := why_not_kept(self.folder):
                raise folders.NotOwn(why)
            folders.make_own(self.folder, 0o700)
            self._lock = os.open(os.path.join(self.folder, _LOCK_FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of an agent of this name in another cluster
            self._listener = await self._bind(_read(path))
            self._listener.setblocking(True)
            self.port = int(self._listener.getsockname()[1])
            _write(path, self.port)
        except (OSError, folders.NotOwn) as e:
            self.port = 0
            log.error("LAVA_CHKPNT_COPY_DIR: %s: no copies are held here", e)

    async def _bind(self, before: int) -> socket.socket:
        """On the port ``before``, which the process of the previous agent may still have for a moment."""
        for _ in range(BIND_TRIES if before else 0):
            try:
                return link.listen(self._address, before)
            except OSError:
                await asyncio.sleep(BIND_PAUSE)
        return link.listen(self._address)

    def welcomed(self, welcome: pb.Welcome) -> None:
        """The master has named what this host shows to others; an older master names nothing."""
        if not self.port or not welcome.copies_key:
            return
        config = {
            "key": welcome.copies_key.decode(),
            "cert": welcome.copies_cert.decode(),
            "secret": welcome.copies_secret.hex(),
            "folder": self.folder,
            "most": self._most,
        }
        found = json.dumps(config).encode() + b"\n"
        if found != self._config:
            self._config = found
            self._changed.set()

    async def run(self) -> None:
        """Keep the process running."""
        while True:
            await self._changed.wait()
            assert self._listener is not None
            fd = self._listener.fileno()
            words = checkpoints.words("hold", str(fd))
            try:
                process = await asyncio.create_subprocess_exec(*words, stdin=asyncio.subprocess.PIPE, pass_fds=(fd,))
            except OSError as e:  # the host has no room for another process
                log.error("copies of checkpoints are not held now: %s", e)
                await asyncio.sleep(RESTART_PAUSE)
                continue
            assert process.stdin is not None
            self._changed.clear()
            process.stdin.write(self._config)
            ended = asyncio.create_task(process.wait())
            changed = asyncio.create_task(self._changed.wait())
            try:
                await asyncio.wait((ended, changed), return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    log.warning(
                        "the process that holds copies of checkpoints has ended (%s), and is started again", ended.result()
                    )
                    self._changed.set()
            finally:
                process.stdin.close()
                for task in (ended, changed):
                    task.cancel()
            await asyncio.sleep(RESTART_PAUSE)

    async def look(self, poke: Callable[[], None]) -> None:
        """See what is held, have it told to the master, and remove what is no longer needed."""
        while self.port:
            if self._drop:
                jobs, self._drop = self._drop, []
                count = await self._workers.run(holding.drop, self.folder, jobs)
                log.info("copies of checkpoints of %d jobs are removed", count)
            try:
                self._held = await self._workers.run(holding.jobs_in, self.folder)
            except OSError as e:
                self._held = []
                log.error("LAVA_CHKPNT_COPY_DIR: %s", e)
            if self._held:
                self._to_tell = True
                poke()
            await asyncio.sleep(LOOK_PAUSE)
        await asyncio.Event().wait()

    def take(self) -> pb.Copies | None:
        """What is to be told to the master."""
        told, self._to_tell = self._to_tell, False
        return pb.Copies(jobs=self._held) if told else None

    def unneeded(self, jobs: Iterable[str], now: float) -> None:
        """The master knows no job that may need these; one that a job has needed meanwhile is not among them."""
        self._over = {job: self._over.get(job, now) for job in jobs}
        self._drop = [job for job, since in self._over.items() if now >= since + LINGER]


def _read(path: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _write(path: str, port: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{port}\n")
