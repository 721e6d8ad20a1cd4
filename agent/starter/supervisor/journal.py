"""What the starter must still know after it was killed: the parts it took, their shepherds, the ends not forgotten.

Rule: a batch of parts is on disk before any of it starts; an end file is believed only about its shepherd's parts. A full
disk refuses new parts and nothing else: what else could not be noted is made good by ``begin``, as soon as there is room.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from agent.starter.process import account
from agent.starter.protocol.codec import Json, parse, read, text, write
from agent.starter.protocol.reports import End, Lost, PartState, Refused, find_report, write_report
from agent.starter.supervisor.parts import Part
from agent.starter.system.stdio import append


class FormerShepherd(NamedTuple):
    """A shepherd of a former starter: a process that may still be there."""

    number: int
    pid: int
    starttime: int


class Former:
    """What a former starter of this folder left behind."""

    def __init__(self) -> None:
        self.boot = ""
        self.seq = 0
        self.parts: dict[str, Part] = {}
        self.shepherds: list[FormerShepherd] = []


class Journal:
    """The journal file and the folder of end files."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "journal")
        self.ends = os.path.join(folder, "ends")
        self._fd = -1
        self.size = 0
        self.behind = False
        """Something was not noted: the journal is to be begun anew."""

    def end_path(self, number: int) -> str:
        """The end file of a shepherd."""
        return os.path.join(self.ends, f"{number}.end")

    def load(self) -> Former:
        """Read what is there; a last line cut off by a crash is left out."""
        former = Former()
        try:
            with open(self._path, "rb") as f:
                lines = f.read().split(b"\n")
        except OSError:
            lines = []
        for line in lines:
            try:
                _apply(former, parse(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        self._add_ends(former)
        return former

    def _add_ends(self, former: Former) -> None:
        by_shepherd: dict[int, list[Part]] = {}
        for part in former.parts.values():
            if part.end is None and part.shepherd:
                by_shepherd.setdefault(part.shepherd, []).append(part)
        for number, parts in by_shepherd.items():
            ends = account.read_ends(self.end_path(number))
            for part in parts:
                if part.uid in ends:
                    part.end = ends[part.uid]

    def begin(self, boot: str, seq: int, parts: Iterable[Part]) -> None:
        """A new journal with what is still wanted; the former end files are not needed after it."""
        os.makedirs(self.ends, mode=0o700, exist_ok=True)
        new = self._path + ".new"
        with open(new, "wb") as f:
            f.write(text({"boot": boot, "seq": seq}) + b"\n")
            for part in parts:
                f.write(text(_kept(part)) + b"\n")
            f.flush()
            os.fsync(f.fileno())
        os.rename(new, self._path)
        _sync_folder(os.path.dirname(self._path))
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self.size = os.fstat(self._fd).st_size
        self.behind = False

    def drop_former_ends(self) -> None:
        """Remove the end files of former shepherds (their ends are in the new journal)."""
        for name in os.listdir(self.ends):
            os.unlink(os.path.join(self.ends, name))

    def _write(self, entry: Json) -> None:
        line = text(entry) + b"\n"
        append(self._fd, line)
        self.size += len(line)

    def _note(self, entry: Json) -> None:
        try:
            self._write(entry)
        except OSError:
            self.behind = True

    def take(self, seq: int, parts: list[Part]) -> None:
        """A batch of parts, safe on disk on return; OSError when the disk does not take it."""
        self._write({"seq": seq, "parts": [_fields(part) for part in parts]})
        os.fdatasync(self._fd)

    def shepherd(self, number: int, pid: int, starttime: int) -> None:
        """A shepherd was forked."""
        self._note({"lane": number, "pid": pid, "start": starttime})

    def over(self, part: Part) -> None:
        """A part that was lost or refused: no end file says so."""
        self._note({"over": part.uid, "state": part.state.value, "why": _why(part)})

    def wrote(self, part: Part) -> None:
        """What was to be written for it after its end was written, or could not be."""
        self._note({"wrote": part.uid, "error": part.wrote})

    def forget(self, uids: list[str]) -> None:
        """These are no longer wanted."""
        self._note({"f": uids})


def _kept(part: Part) -> Json:
    end = None if part.end is None else write(part.end)
    return {"keep": _fields(part), "end": end, "state": part.state.value, "why": _why(part), "wrote": part.wrote}


def _fields(part: Part) -> list[object]:
    return [part.uid, part.key, part.attempt, part.shepherd]


def _why(part: Part) -> Json | None:
    return None if part.reason is None else write_report(part.reason)


def _apply(former: Former, entry: Any) -> None:
    """Take over one line; what is no entry raises ValueError, LookupError, TypeError or AttributeError."""
    if "boot" in entry:
        former.boot, former.seq = str(entry["boot"]), int(entry["seq"])
    elif "keep" in entry:
        part = _part(entry["keep"])
        _settle(part, entry)
        part.end = None if entry["end"] is None else read(End, entry["end"])
        part.wrote = entry.get("wrote")
        former.parts[part.uid] = part
    elif "parts" in entry:
        former.seq = max(former.seq, int(entry["seq"]))
        for fields in entry["parts"]:
            part = _part(fields)
            former.parts[part.uid] = part
    elif "lane" in entry:
        former.shepherds.append(FormerShepherd(int(entry["lane"]), int(entry["pid"]), int(entry["start"])))
    elif "over" in entry:
        if part_over := former.parts.get(entry["over"]):
            _settle(part_over, entry)
    elif "wrote" in entry:
        if part_wrote := former.parts.get(entry["wrote"]):
            part_wrote.wrote = entry["error"]
    elif "f" in entry:
        for uid in entry["f"]:
            former.parts.pop(uid, None)


def _settle(part: Part, entry: Any) -> None:
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
