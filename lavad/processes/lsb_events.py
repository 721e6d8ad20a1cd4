"""The process that writes lsb.events and lsb.acct from the event table, for tools that read these files.

Rule: it only reads the store, and saves its position beside the files, so that each event is written once; what was written
after that position was saved, by one that was killed, is removed first. The one that was started last writes: that of a master
that hangs, while another master is at work, finds the position of the other and ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import stat
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lavad.collector import look_rarely
from lavad.core.events import Configured, Event
from lavad.lsb import archive, position
from lavad.lsb.lines import ACCOUNTS, EVENTS, Earlier, lines_of
from lavad.processes.overdue import Overdue
from lavad.replica import protocol as feed
from lavad.replica.spawn import child_socket, set_title
from lavad.store.errors import StoreError
from lavad.store.read import Reader

EVERY, AGAIN = 1.0, 5.0
"""Seconds between two looks, and before what could not be written is tried again."""
HANGS = 20.0
"""Seconds after which the disk is said to hang."""
AT_ONCE = 5000
LARGEST = 256 << 20
HELD = 1 << 20
"""Characters of lines that are written at once."""


class Replaced(Exception):
    """Another process writes these files now."""


class Log:
    """The two files and the position up to which events are written."""

    def __init__(self, folder: Path, reader: Reader) -> None:
        self.folder = folder
        self.reader = reader
        self._writer = int.from_bytes(os.urandom(6), "big")
        self._others: int | None = None
        """Whose position was there at the beginning; None: it is not known yet."""
        self._begun = False
        self.paths = {name: folder / name for name in (EVENTS, ACCOUNTS)}
        self.restored = max((seq for seq, _ in reader.site_events(["StoreRestored"], 0.0, float("inf"))), default=0)
        """The number of the event by which the store was last restored from a backup; 0: never."""
        self.seq = 0
        self.earlier = Earlier()
        self.finished = 0
        """Jobs that have finished since the last lsb.events was moved away."""
        self.params = reader.params()
        with contextlib.suppress(OSError):
            self._begin()

    def _begin(self) -> None:
        """Go on from the last saved position; again where something could not be written."""
        writer = position.read(self.folder).get("writer", 0)
        if self._others is None:
            self._others = writer
        elif writer not in (0, self._others, self._writer):
            raise Replaced
        self.seq = self._recovered()
        self.earlier = Earlier()
        self._save()
        self._begun = True

    def _recovered(self) -> int:
        """The position to continue from; lines written after the last saved position are removed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._hide()
        mark = position.read(self.folder) or {"restored": self.restored}
        for name, path in self.paths.items():
            size = int(mark.get(name, 0))
            path.touch()
            if path.stat().st_size > size:
                os.truncate(path, size)
        if int(mark.get("restored", 0)) != self.restored:
            return self.restored - 1  # the numbers up to there were given to other events before
        return int(mark.get("seq", 0))

    def _hide(self) -> None:
        """Where bhist and bacct show not all of others' jobs, who can read the files would see all: the folder is lavad's alone.

        Raises OSError, before anything is written. It stays so where they show all again: whose it is, is the site's to say.
        """
        if self.params.secure_infodir_user_access == "N":
            return
        found = self.folder.stat()
        others = stat.S_IRWXO | (stat.S_IRWXG if found.st_uid == os.geteuid() else 0)
        if not found.st_mode & others:
            return
        try:
            self.folder.chmod(stat.S_IMODE(found.st_mode) & ~others)
        except PermissionError:
            why = "other users may enter its folder, which SECURE_INFODIR_USER_ACCESS forbids, and it is not lavad's to close"
            raise PermissionError(errno.EPERM, why) from None

    def _save(self) -> None:
        position.save(self.folder, self.seq, self.paths.values(), self.restored, self._writer)

    def _check(self) -> None:
        """Raises Replaced where another process has saved its position since this one has."""
        mark = position.read(self.folder)
        if mark and mark.get("writer") != self._writer:
            raise Replaced

    def advance(self) -> bool:
        """Write new events; whether there may be more. Raises Replaced, before anything is written.

        OSError: it goes on from the last saved position when it is called again.
        """
        try:
            if not self._begun:
                self._begin()
            return self._advance()
        except OSError:
            self._begun = False
            raise

    def _advance(self) -> bool:
        rows = self.reader.events_after(self.seq, AT_ONCE)
        if not rows:
            return False
        self.params = next((event.conf.params for _, event in reversed(rows) if isinstance(event, Configured)), self.params)
        self._hide()
        self._write([event for _, event in rows])
        self.seq = rows[-1][0]
        self._check()
        self._save()
        # after the position, which for the file that is moved away would not be known any more
        if self._rotated():
            self._save()
        return len(rows) >= AT_ONCE

    def _write(self, events: Sequence[Event]) -> None:
        lines: dict[str, list[str]] = {name: [] for name in self.paths}
        held = 0
        for name, line in lines_of(self.reader, events, self.earlier):
            lines[name].append(line)
            held += len(line)
            self.finished += name == ACCOUNTS
            if held >= HELD:
                self._append(lines)
                held = 0
        self._append(lines)

    def _append(self, lines: dict[str, list[str]]) -> None:
        self._check()
        for name, some in lines.items():
            if some:
                with self.paths[name].open("a", encoding="utf-8", errors="surrogateescape") as file:
                    file.write("".join(some))
                some.clear()

    def _rotated(self) -> bool:
        """Move away what is due; whether any was."""
        params = self.params
        events, accounts = self.paths[EVENTS], self.paths[ACCOUNTS]
        full = self.finished >= params.max_job_num > 0 or events.stat().st_size > LARGEST
        old = archive.is_due(accounts, time.time(), params.acct_archive_size << 10, params.acct_archive_age)
        if full:
            self.finished = 0
            archive.rotate(events, params.lava_event_files)
        if old:
            archive.rotate(accounts, params.max_acct_archive_file)
        return full or old


def _say(link: socket.socket, why: str) -> None:
    """To the log and to the master; "": it is written again."""
    line = why or "lsb.events is written again"
    print(line, file=sys.stderr, flush=True)  # noqa: T201
    link.sendall(f"{why}\n".encode(errors="replace"))


def _site(link: socket.socket) -> feed.ReplicaSettings:
    """The first frame from the master."""
    data = b""
    while len(data) < feed.HEAD.size or len(data) < feed.HEAD.size + feed.HEAD.unpack(data[: feed.HEAD.size])[0]:
        piece = link.recv(1 << 16)
        if not piece:
            raise SystemExit(0)
        data += piece
    site = feed.decode_news(data[feed.HEAD.size :])
    assert isinstance(site, feed.ReplicaSettings)
    return site


def main() -> int:
    """Entry point: writes until the master is gone."""
    set_title("lava-eventlog")
    look_rarely()
    link = child_socket()
    site = _site(link)
    folder = position.folder_of(site.lsf["LSB_SHAREDIR"], site.cluster)
    try:
        link.sendall(b"\n")  # what another one before has said is past
        hangs = f"lsb.events in {folder} is not written: a look or write there has not ended for {HANGS:g} s"
        overdue = Overdue(partial(_say, link), hangs, HANGS)
        with overdue.watched():
            log, told = Log(folder, Reader.open(site.database)), ""
        while True:
            why = ""
            try:
                more = True
                while more:
                    with overdue.watched():
                        more = log.advance()
            except OSError as error:  # no room, say: that passes
                why = f"lsb.events in {folder} is not written: {error.strerror or error}"
            if why != told:
                _say(link, why)
                told = why
            if select.select([link], [], [], AGAIN if told else EVERY)[0] and not link.recv(1 << 16):
                return 0
    except Replaced:
        print(f"lsb.events in {folder} is written by another master now", file=sys.stderr, flush=True)  # noqa: T201
        return 1
    except BrokenPipeError:
        return 0  # the master has ended
    except (OSError, StoreError) as error:
        print(f"lsb.events in {folder} is not written: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
