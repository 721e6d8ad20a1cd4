"""The starter's journal: the parts that it accepted, their shepherds, and the ends that the master has not acknowledged.

Rule: a batch of parts is in the file before any of them starts, so that the next starter knows of it, and what a turn wrote is on
disk at its end: nothing waits for the disk but the next turn. A crash of the machine, which may lose the last turn, shows in the
boot id: a part that was sent there before it may have run. An end file is believed only about its own shepherd's parts. A full
disk changes nothing until RESERVE is used up; then the journal, like one that cannot be written, refuses new parts and nothing
else: ``rewrite`` makes up later for what could not be written.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from agent.starter.process import ends
from agent.starter.process.ends import EncodedEnd, EndFile
from agent.starter.protocol.codec import Json, parse, read, text, write
from agent.starter.protocol.reports import End, Ended, Lost, PartState, Refused, find_report, write_report
from agent.starter.supervisor.parts import Part
from agent.starter.system import kernel
from agent.starter.system.stdio import append

RESERVE = 1 << 20
"""Bytes set aside for entries, about two thousand parts, and as many for the next journal."""
FILLED = 256 << 10
"""Bytes of zeros that are written ahead of the entries: one that takes their place does not make the file longer, and is on disk
without a transaction of the file system."""

MOST_SPARE = 1024
"""End files of dead shepherds that are kept for new ones: to make a file is the dearest of what a new shepherd needs, and dearer
by far where many files were removed (ext4 passes over their inodes for minutes)."""


class RecordedShepherd(NamedTuple):
    """A shepherd as the journal has it; that of a former starter may still run."""

    number: int
    pid: int
    starttime: int
    uid: int
    """Its user, -1 in a journal of an older version."""


class FormerState:
    """What the journal of a former starter says."""

    def __init__(self) -> None:
        self.boot = ""
        self.seq = 0
        self.parts: dict[str, Part] = {}
        self.shepherds: list[RecordedShepherd] = []


class Journal:
    """The journal file, and the folder of end files, which shepherds write."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "journal")
        self.ends = os.path.join(folder, "ends")
        self._fd = -1
        self.size = 0
        """Bytes of entries."""
        self._filled = 0
        """Bytes of the file."""
        self._unsafe = False
        """Parts or ends were written and may not be on disk."""
        self._unwritten: list[bytes] = []
        """Lines of ends."""
        self._spare: list[str] = []
        """Paths of end files in which no end is needed."""
        self.incomplete = False
        """An entry could not be written: the journal must be rewritten."""

    def end_path(self, number: int) -> str:
        """The path of a shepherd's end file."""
        return os.path.join(self.ends, f"{number}.end")

    def load(self) -> FormerState:
        """Read journal and end files; a last line cut off by a crash is ignored.

        OSError for a journal that is there and cannot be read: its parts would be forgotten.
        """
        former = FormerState()
        try:
            with open(self._path, "rb") as f:
                lines = f.read().split(b"\n")
        except FileNotFoundError:
            lines = []
        for line in lines:
            try:
                _apply(former, parse(line))
            except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
                continue
        self._add_ends(former)
        return former

    def _add_ends(self, former: FormerState) -> None:
        by_shepherd: dict[int, list[Part]] = {}
        for part in former.parts.values():
            if part.end is None and part.shepherd:
                by_shepherd.setdefault(part.shepherd, []).append(part)
        for number, parts in by_shepherd.items():
            known = ends.read_ends(self.end_path(number), sure=True)
            for part in parts:
                if part.uid in known:
                    part.end = known[part.uid]

    def rewrite(self, boot: str, seq: int, parts: Iterable[Part]) -> None:
        """Replace the journal by one with these parts and their ends, so that older end files are not needed; OSError."""
        self.incomplete = True
        os.makedirs(self.ends, mode=0o700, exist_ok=True)
        new = self._path + ".new"
        # not truncated when it is opened: it has blocks of its own since the last time
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size:
                os.truncate(fd, 0)
            lines = [text({"boot": boot, "seq": seq}), *(text(_entry_of(part)) for part in parts), b""]
            append(fd, b"\n".join(lines))
            os.fsync(fd)
            os.rename(new, self._path)
        except OSError:
            os.close(fd)
            raise
        # from here on this file is the journal, whatever becomes of its folder
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self.size = self._filled = os.fstat(fd).st_size
        _sync_folder(os.path.dirname(self._path))
        self.incomplete = self._unsafe = False
        self._unwritten.clear()
        self._reserve(new)

    def _reserve(self, new: str) -> None:
        """Room for what comes, and for the journal that takes this one's place."""
        kernel.reserve(self._fd, self.size, RESERVE)
        with contextlib.suppress(OSError):
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            kernel.reserve(fd, 0, RESERVE)
            os.close(fd)

    def drop_former_ends(self) -> None:
        """Remove all end files; the ends in them are in the new journal."""
        for name in os.listdir(self.ends):
            os.unlink(os.path.join(self.ends, name))

    def _write(self, *entries: Json) -> None:
        self._write_lines([*self._unwritten, *map(text, entries)])
        self._unsafe = self._unsafe or bool(self._unwritten)
        self._unwritten.clear()

    def _write_lines(self, lines: list[bytes]) -> None:
        data = b"\n".join([*lines, b""])
        end = self.size + len(data)
        if end > self._filled:
            self._fill(end)
        # what a full disk takes of them is no entry, and gives way to the next ones
        if os.pwrite(self._fd, data, self.size) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.size = end
        self._filled = max(end, self._filled)

    def _fill(self, end: int) -> None:
        """Write zeros from the end of the file on, to well behind ``end``; what a full disk has no room for stays away."""
        with contextlib.suppress(OSError):
            self._filled += os.pwrite(self._fd, bytes(end - self._filled + FILLED), self._filled)

    def _append(self, *entries: Json) -> None:
        try:
            self._write(*entries)
        except OSError:
            self.incomplete = True

    def add(self, seq: int, parts: list[Part]) -> None:
        """Write a batch of parts, which is on disk after the next ``sync``; OSError when that fails."""
        try:
            self._write({"seq": seq, "parts": [_fields(part) for part in parts]})
            self._unsafe = True
        except OSError:
            self.incomplete = True
            raise

    def sync(self) -> None:
        """Parts and ends so far are safe on disk on return, unless the disk is full or fails."""
        lines, self._unwritten = self._unwritten, []
        if lines or self._unsafe:
            self._unsafe = False
            try:
                if lines:
                    self._write_lines(lines)
                os.fdatasync(self._fd)
            except OSError:
                self.incomplete = True

    def add_shepherds(self, shepherds: list[RecordedShepherd]) -> None:
        """Write that these were forked."""
        if shepherds:
            self._append(*map(_shepherd, shepherds))

    def lost(self, part: Part) -> None:
        """Write that a part was lost, which no end file says."""
        self._append({"over": part.uid, "state": part.state.value, "why": _why(part)})

    def ended(self, encoded: EncodedEnd) -> None:
        """Write the end of a part at the next ``sync``, which is to follow in the same turn."""
        self._unwritten.append(encoded.text)

    def ran_out_of_memory(self, part: Part) -> None:
        """Write that the kernel has killed processes of a part for its memory limit."""
        self._append({"oom": part.uid})

    def wrote(self, part: Part) -> None:
        """Write that the part's report was written into the user's file, or could not be."""
        self._append({"wrote": part.uid, "error": part.wrote})

    def make_ends(self, number: int) -> EndFile:
        """The end file of a new shepherd, whose number no other had since ``drop_former_ends``; OSError."""
        return ends.make(self.end_path(number), self._spare.pop() if self._spare else "")

    def remove_ends(self, number: int) -> None:
        """No end in the end file of a dead shepherd is needed: the next new shepherd may have it."""
        if len(self._spare) < MOST_SPARE:
            self._spare.append(self.end_path(number))
            return
        with contextlib.suppress(OSError):
            os.unlink(self.end_path(number))

    def forget(self, uids: list[str]) -> None:
        """Write that these parts are no longer needed."""
        self._append({"f": uids})


def _entry_of(part: Part) -> Json:
    end = None if part.end is None else write(part.end)
    return {"keep": _fields(part), "end": end, "state": part.state.value, "why": _why(part), "wrote": part.wrote, "oom": part.oom}


def _shepherd(one: RecordedShepherd) -> Json:
    return {"lane": one.number, "pid": one.pid, "start": one.starttime, "user": one.uid}


def _fields(part: Part) -> list[object]:
    return [part.uid, part.key, part.attempt, part.shepherd]


def _why(part: Part) -> Json | None:
    return None if part.reason is None else write_report(part.reason)


def _apply(former: FormerState, entry: Any) -> None:
    """Apply one line; ValueError, LookupError, TypeError or AttributeError: it is invalid, or about a part that is not there."""
    if "boot" in entry:
        former.boot, former.seq = str(entry["boot"]), int(entry["seq"])
    elif "keep" in entry:
        part = _part(entry["keep"])
        _set_outcome(part, entry)
        part.end = None if entry["end"] is None else read(End, entry["end"])
        part.wrote, part.oom = entry.get("wrote"), bool(entry.get("oom"))
        former.parts[part.uid] = part
    elif "parts" in entry:
        former.seq = max(former.seq, int(entry["seq"]))
        for fields in entry["parts"]:
            part = _part(fields)
            former.parts[part.uid] = part
    elif "lane" in entry:
        shepherd = RecordedShepherd(int(entry["lane"]), int(entry["pid"]), int(entry["start"]), int(entry.get("user", -1)))
        former.shepherds.append(shepherd)
    elif "over" in entry:
        _set_outcome(former.parts[entry["over"]], entry)
    elif "wrote" in entry:
        former.parts[entry["wrote"]].wrote = entry["error"]
    elif "oom" in entry:
        former.parts[entry["oom"]].oom = True
    elif "is" in entry:
        ended = read(Ended, entry)
        former.parts[ended.uid].end = ended.end
    elif "f" in entry:
        for uid in entry["f"]:
            former.parts.pop(uid, None)


def _set_outcome(part: Part, entry: Any) -> None:
    part.state = PartState(entry["state"])
    reason = None if entry["why"] is None else find_report(entry["why"])
    part.reason = reason if isinstance(reason, Refused | Lost) else None


def _part(fields: Any) -> Part:
    uid, key, attempt, shepherd = fields
    return Part(str(uid), int(key), int(attempt), int(shepherd))


def _sync_folder(path: str) -> None:
    fd = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
