"""Working folders that were made for jobs here (``-cwd "run.%J"``), which go some time after the job is over (JOB_CWD_TTL).

Rule: the master says that a job is over, as it may run again, here or elsewhere; it is asked again just before a folder goes. The
folder is removed by a process of the job's user. The list is on disk, and small: nobody waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Container, Sequence

import msgspec

from agent.launch.build import Compiled
from agent.launch.outputs import DISCARDED, NOWHERE, show
from agent.launch.site import User
from agent.parts.entry import Entry
from agent.parts.job_report import FOLDER
from agent.parts.table import PartTable
from agent.starter.protocol.part import NO_RANK, NOTHING, PartSpec, TaskSpec
from agent.starter.system.stdio import append
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb
from proto.daemon.saved import DAMAGED
from proto.whole_file import replace_file

log = logging.getLogger("lava-agent")

LOOK_PAUSE = 60.0
"""Seconds between two looks for folders of which the master is to be asked."""
ASKED_AT_ONCE = 5000
HOUR = 3600
GONE = -1
"""As ``hours``: the folder was removed."""
MOST_LINES = 1000
"""The file is written anew when it has so many lines more than twice those that count."""


class Kept(msgspec.Struct, frozen=True):
    """A folder that an attempt made. ``over``: when its job was found to be over (seconds since the epoch), 0.0: not yet."""

    uid: str
    key: int
    attempt: int
    folder: str
    user: User
    hours: int
    over: float = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it goes, if its job is still over."""
        return bool(self.over) and now >= self.over + self.hours * HOUR


class WorkFolders:
    """Those of one host; the list is a file of the agent's own ``folder``: a line for each change, the last of an uid counts."""

    def __init__(self, folder: str, table: PartTable, starter: Outgoing) -> None:
        self._path = os.path.join(folder, "work_folders")
        self._table = table
        self._starter = starter
        self._poke: Callable[[], None] = _nothing
        self._to_ask = True
        self._asked: list[str] = []
        """Uids of those that the master is being asked about."""
        self._kept = _read(self._path)
        self._lines = MOST_LINES if self._kept else 0

    def keep(self, entry: Entry) -> None:
        """An attempt is over: the folder that was made for it, if it is to go some day."""
        if entry.end is None or not entry.end.made_cwd or entry.made is None or not entry.made.text.HasField("cwd_hours"):
            return
        self._change([_made_by(entry, entry.made)])
        self._ask()

    async def look(self, poke: Callable[[], None]) -> None:
        """Have the master asked from time to time (``poke``)."""
        self._poke = poke
        while True:
            self._ask()
            await asyncio.sleep(LOOK_PAUSE)

    def _ask(self) -> None:
        self._to_ask = bool(self._kept)
        if self._to_ask:
            self._poke()

    def take(self, now: float) -> pb.WorkFolders | None:
        """What the master is to be asked now; None: nothing."""
        if not self._to_ask:
            return None
        self._to_ask = False
        asked = [one for one in self._kept.values() if not one.over or one.is_due(now)][:ASKED_AT_ONCE]
        self._asked = [one.uid for one in asked]
        return pb.WorkFolders(jobs=[one.key for one in asked]) if asked else None

    def answered(self, over: Container[int], now: float) -> None:
        """The jobs, of those that it was asked about, that the master says are over."""
        asked, self._asked = [self._kept[uid] for uid in self._asked if uid in self._kept], []
        changed = []
        for one in asked:
            found = msgspec.structs.replace(one, over=(one.over or now) if one.key in over else 0.0)
            if found.is_due(now) and not self._is_used(found.folder):
                log.info("job %s: its working folder %s is removed", show(one.key), one.folder)
                self._starter.start(0, NOTHING, _removal(one))
                found = msgspec.structs.replace(found, hours=GONE)
            if found != one:
                changed.append(found)
        self._change(changed)

    def _change(self, changed: Sequence[Kept]) -> None:
        """Note it, here and on disk; a full disk costs the removal of a folder after a restart of the agent."""
        for one in changed:
            self._kept[one.uid] = one
            self._lines += 1
            if one.hours == GONE:
                del self._kept[one.uid]
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in changed)
        try:
            if self._lines > MOST_LINES + 2 * len(self._kept):
                replace_file(self._path, b"".join(msgspec.json.encode(one) + b"\n" for one in self._kept.values()), 0o600)
                self._lines = len(self._kept)
            elif lines:
                fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                try:
                    append(fd, lines)
                finally:
                    os.close(fd)
        except OSError as e:
            log.warning("%s: %s", self._path, e.strerror)

    def _is_used(self, folder: str) -> bool:
        """Whether a job that is here works in the folder, or below it."""
        return any(f"{entry.where.cwd}/".startswith(f"{folder.rstrip('/')}/") for entry in self._table)


def _read(path: str) -> dict[str, Kept]:
    found: dict[str, Kept] = {}
    with contextlib.suppress(OSError), open(path, "rb") as file:
        for line in file:
            with contextlib.suppress(*DAMAGED):
                one = msgspec.json.decode(line, type=Kept)
                found[one.uid] = one
    return {uid: one for uid, one in found.items() if one.hours != GONE}


def _made_by(entry: Entry, made: Compiled) -> Kept:
    # a folder without %I in its name is that of all elements: it stays until all are over
    key = entry.key if "%I" in made.text.cwd else entry.key & 0xFFFFFFFF
    return Kept(entry.uid, key, entry.part.attempt, entry.where.cwd, made.user, made.text.cwd_hours)


def _removal(one: Kept) -> PartSpec:
    return NOTHING._replace(
        uid=one.uid + FOLDER,
        key=one.key,
        attempt=one.attempt,
        title=f"{show(one.key)} removal of its folder",
        user=one.user.account,
        env={"PATH": "/usr/bin:/bin"},
        tasks=(TaskSpec(NO_RANK, {}),),
        argv=("rm", "-rf", "--", one.folder),
        stdin=NOWHERE,
        stdout=DISCARDED,
    )


def _nothing() -> None:
    pass
