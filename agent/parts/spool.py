"""The agent's own memory on disk: the master that it obeys, and what it must know of its parts when it starts again.

Rule: that an attempt exists, and how it ended, is the starter's journal; this one tells what it was for. It is lost
with the machine, as the attempts are, and is never waited for. Nobody else may read it: environments of jobs are in it.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re

import msgspec

from agent.core.part import Part
from agent.launch.site import User
from agent.parts.past_ends import PastEnds
from agent.starter.system.stdio import append
from proto import agent_pb2 as pb
from proto.daemon.saved import DAMAGED
from proto.whole_file import remove_unfinished, replace_file

COMPACT_AT = 16 << 20
KEPT_TEXTS = 1024
KEPT_BYTES = 64 << 20
"""Texts of arrays that are known to be in the journal, by their place in memory, which they keep for that."""
FULL = (errno.ENOSPC, errno.EDQUOT)
_DRAWN = re.compile(rb"[0-9a-f]{32}")
log = logging.getLogger("lava-agent")


class Obeyed(msgspec.Struct, frozen=True):
    """The master that the agent obeys: its store's incarnation, and the highest epoch seen."""

    incarnation: str = ""
    epoch: int = 0
    left: tuple[str, ...] = ()
    """Incarnations that were obeyed before: a master that comes back with one of them is not obeyed."""
    retell: float = 0.0
    """Not 0: the store was restored from a backup of that time, and does not have all ends since yet."""


class Saved(msgspec.Struct):
    """What is known of one part: its order and text (as protobuf bytes), its user, and the agent's own notes."""

    order: bytes
    text: bytes
    user: User | None
    received: float
    part: Part | None = None
    ended: bool = False
    ends: str = ""
    """Its file that says when it must end; "": that of its uid."""


class _Text(msgspec.Struct, frozen=True, tag="t", array_like=True):
    number: int
    text: bytes


class _Began(msgspec.Struct, frozen=True, tag="b", array_like=True):
    uid: str
    text: int
    order: bytes
    user: User | None
    received: float
    ends: str = ""


class _Kept(msgspec.Struct, frozen=True, tag="k", array_like=True):
    part: Part


class _Forgot(msgspec.Struct, frozen=True, tag="f", array_like=True):
    uid: str


class _Journal(msgspec.Struct, frozen=True):
    """What a journal says: its parts that were not forgotten, its highest number of a text, and the bytes of whole entries."""

    saved: dict[str, Saved]
    last_text: int
    size: int


_Entry = _Text | _Began | _Kept | _Forgot
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Entry).decode


class NotReadable(Exception):
    """A file of the agent's notes is there and cannot be read: without it, parts that run would be forgotten."""


class Spool:
    """The two files; what is written goes to the system at ``flush``, once a turn of the loop."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)
        remove_unfinished(folder)
        self.folder = folder
        self.ends = PastEnds(folder)
        self._state = os.path.join(folder, "obeyed.json")
        self._path = os.path.join(folder, "parts.journal")
        self._waiting: list[bytes] = []
        self._texts: dict[int, tuple[object, int]] = {}
        self._text_bytes = 0
        self._last_text = 0
        self.size = 0
        self._fd = -1

    def obeyed(self) -> Obeyed:
        """The master that was obeyed last; raises NotReadable."""
        try:
            return msgspec.json.decode(_bytes_of(self._state), type=Obeyed)
        except DAMAGED:
            return Obeyed()

    def drawn(self) -> str:
        """Which agent this is: drawn at random once for the folder; "" where that cannot be kept. Raises NotReadable."""
        path = os.path.join(self.folder, "drawn")
        known = _bytes_of(path)
        if _DRAWN.fullmatch(known):
            return known.decode("ascii")
        drawn = os.urandom(16).hex()
        try:
            replace_file(path, drawn, 0o600, synced=True)
        except OSError as e:
            log.warning("%s: %s", path, e.strerror)
            return ""
        return drawn

    def obey(self, obeyed: Obeyed) -> None:
        """Safe on disk on return: an older master is never obeyed again, after a power cut either."""
        data = msgspec.json.encode(obeyed)
        try:
            replace_file(self._state, data, 0o600, synced=True)
        except OSError as e:
            if e.errno not in FULL or not os.path.exists(self._state):
                raise
            self._obey_in_place(data)

    def _obey_in_place(self, data: bytes) -> None:
        """On a full disk: into the sector that the file has, which is written whole or not at all."""
        fd = os.open(self._state, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, data.ljust(os.fstat(fd).st_size), 0)
            os.fsync(fd)
        finally:
            os.close(fd)

    def load(self) -> dict[str, Saved]:
        """All parts that were not forgotten; then the journal is rewritten with them alone, where the disk has room for that.

        Raises NotReadable.
        """
        found = _read(self._path)
        try:
            self._begin(found.saved)
        except OSError:
            if not os.path.exists(self._path):
                raise
            self._go_on(found)
        return found.saved

    def began(self, uid: str, order: bytes, text: pb.JobText, user: User | None, received: float, ends: str) -> None:
        """A part that is about to start. Elements share a ``text``; ``ends``: its file that says when it must end."""
        self._put(_Began(uid, self._number_of(text), order, user, received, ends))

    def keep(self, part: Part) -> None:
        """The agent's own notes about a part."""
        self._put(_Kept(part))

    def forget(self, uid: str) -> None:
        """Nothing need be known of it any more."""
        self._put(_Forgot(uid))

    def flush(self) -> None:
        """Hand over to the system what was written since."""
        self.ends.flush()
        if self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            # A full disk takes reports of a restarted agent their words; it must not take jobs anything.
            try:
                append(self._fd, data)
                self.size += len(data)
            except OSError:
                self._drop_texts()

    def compact(self) -> None:
        """Rewrite the journal when it has grown."""
        if self.size > COMPACT_AT:
            self.flush()
            with contextlib.suppress(OSError, NotReadable):
                saved = _read(self._path).saved
                self._drop_texts()
                self._begin(saved)
            self.size = min(self.size, COMPACT_AT // 2)

    def _number_of(self, text: pb.JobText) -> int:
        found = self._texts.get(id(text))
        if found is not None and found[0] is text:
            return found[1]
        body = text.SerializeToString()
        self._last_text += 1
        if text.array_end:
            if len(self._texts) >= KEPT_TEXTS or self._text_bytes + len(body) > KEPT_BYTES:
                self._drop_texts()
            self._texts[id(text)] = (text, self._last_text)
            self._text_bytes += len(body)
        self._put(_Text(self._last_text, body))
        return self._last_text

    def _drop_texts(self) -> None:
        """Parts that are to begin bring their texts again: those that were written may not be in the journal."""
        self._texts.clear()
        self._text_bytes = 0

    def _put(self, entry: _Entry) -> None:
        self._waiting.append(_framed(entry))

    def _begin(self, saved: dict[str, Saved]) -> None:
        temporary = self._path + ".new"
        numbers: dict[bytes, int] = {}
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb", closefd=False) as file:
                for uid, one in saved.items():
                    if one.text not in numbers:
                        self._last_text += 1
                        numbers[one.text] = self._last_text
                        file.write(_framed(_Text(self._last_text, one.text)))
                    file.write(_framed(_Began(uid, numbers[one.text], one.order, one.user, one.received, one.ends)))
                    if one.part is not None:
                        file.write(_framed(_Kept(one.part)))
                size = file.tell()
            os.replace(temporary, self._path)
        except OSError:
            os.close(fd)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        self._append_to(fd, size)

    def _go_on(self, found: _Journal) -> None:
        """Add to the journal that is there, behind its last whole entry."""
        self._last_text = max(self._last_text, found.last_text)
        self._append_to(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), found.size)
        os.ftruncate(self._fd, found.size)

    def _append_to(self, fd: int, size: int) -> None:
        """The journal is this file from here on, and has so many bytes."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self.size = size


def _framed(entry: _Entry) -> bytes:
    body = _encode(entry)
    return len(body).to_bytes(4, "big") + body


def _bytes_of(path: str) -> bytes:
    """What a file holds, b"" where there is none; raises NotReadable."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
    except OSError as e:
        raise NotReadable(str(e)) from e


def _read(path: str) -> _Journal:
    data = _bytes_of(path)
    texts: dict[int, bytes] = {}
    saved: dict[str, Saved] = {}
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "big")
        if end > len(data):
            break  # it was cut off
        try:
            entry = _decode(data[at + 4 : end])
        except DAMAGED as e:
            log.warning("%s: what stands at byte %d is damaged, and left out: %s", path, at, e)
            continue
        finally:
            at = end
        if isinstance(entry, _Text):
            texts[entry.number] = entry.text
        elif isinstance(entry, _Began):
            if (body := texts.get(entry.text)) is not None:
                saved[entry.uid] = Saved(entry.order, body, entry.user, entry.received, ends=entry.ends)
        elif isinstance(entry, _Kept):
            if one := saved.get(entry.part.uid):
                one.part = entry.part
        else:
            saved.pop(entry.uid, None)
    return _Journal(saved, max(texts, default=0), at)
