"""The end files: how the parts of a shepherd ended, one line each.

Rule: an end is in the file before the process is reaped and before the end is reported, so that it outlives shepherd and starter.
That it outlives the machine is the journal's matter: nothing here waits for the disk. A file has its blocks from the start, with
zeros in them, and is written from its beginning again as soon as no end in it is needed. What is left of older ends never passes
for one: each line has a sum of its bytes.
"""

from __future__ import annotations

import binascii
import contextlib
import os
import re
from typing import NamedTuple

from agent.starter.protocol.codec import ProtocolError, parse, read, text
from agent.starter.protocol.reports import EncodedReport, End, Ended, write_report
from agent.starter.system import kernel, proctree

ROOM = 64 << 10
"""Bytes of an end file from the start, about a hundred ends that the master has not acknowledged."""
LARGEST = 64 << 20
"""Bytes of an end file, more than any shepherd may need: no more is ever read, or kept for another one."""
_SUM = b'{"sum":"%08x",%b'
_SUMMED = len(_SUM % (0, b""))


class EndFile(NamedTuple):
    """An end file as its starter opens it; the shepherd writes at the same position."""

    fd: int

    def rewind(self) -> None:
        """No end in it is needed any more: the next one is written at its beginning."""
        os.lseek(self.fd, 0, os.SEEK_SET)

    def close(self) -> None:
        """The shepherd is gone."""
        os.close(self.fd)


def make(path: str, former: str = "") -> EndFile:
    """Make an end file, with its blocks where the disk has room for them; OSError when that fails.

    ``former``: one in which no end is needed any more, and which nobody writes; it is used where it is there.
    """
    if former:
        with contextlib.suppress(OSError):
            os.rename(former, path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        size = os.fstat(fd).st_size
        if size > LARGEST:
            os.ftruncate(fd, 0)
            size = 0
        if size < ROOM:
            kernel.reserve(fd, 0, ROOM)
        try:
            os.pwrite(fd, bytes(max(size, ROOM)), 0)
        except OSError:
            os.ftruncate(fd, 0)
    return EndFile(fd)


class EncodedEnd(NamedTuple):
    """The report of an end, encoded once for the disk and for the starter."""

    text: bytes

    def write(self, fd: int) -> None:
        """Write it into an end file; what a full disk takes of it is no end, and gives way to the next one."""
        line = _summed(self.text) + b"\n"
        with contextlib.suppress(OSError):
            if (written := os.write(fd, line)) < len(line):
                os.lseek(fd, -written, os.SEEK_CUR)

    def report(self, gone: bool) -> EncodedReport:
        """The encoded report; ``gone``: no process of the part is left."""
        return EncodedReport(self.text[:-1] + b',"gone":true}' if gone else self.text)


class ToldEnd(NamedTuple):
    """The end of a part on one host without a first failure, of which nothing is left, as its shepherd told it: not read."""

    uid: str
    encoded: EncodedEnd
    gone: bool = True


_NUMBER = rb"(?:0|[1-9]\d{0,14})"
_TIME = rb"-?%b(?:\.\d{1,17}(?:e-\d\d)?|e-\d\d)" % _NUMBER
_USED = rb'"utime":%b,"stime":%b,"maxrss_kb":%b' % (_TIME, _TIME, _NUMBER)
_TASK = rb'\{"rank":(?:-1|%b),"pid":%b,"status":%b,%b,"at":%b\}' % (_NUMBER, _NUMBER, _NUMBER, _USED, _TIME)
_TOLD = re.compile(
    rb'\{"is":"ended","uid":"([0-9A-Za-z._-]{1,200})","end":\{"status":%b,"at":%b,"started":%b,%b,'
    rb'"tasks":\[%b(?:,%b)*\],"first":null,"lease":false,'
    rb'"shepherd_kb":%b,"cwd":"[^"\\\x00-\x1f\x7f-\xff]{0,4096}"\}(,"gone":true)\}'
    % (_NUMBER, _TIME, _TIME, _USED, _TASK, _TASK, _NUMBER)
)


def find_told(report: bytes) -> ToldEnd | None:
    """The end that a report is, where it has this form to the letter: it is as good as one that was read and written again."""
    found = _TOLD.fullmatch(report)
    return None if found is None else ToldEnd(found[1].decode("ascii"), EncodedEnd(report[: found.start(2)] + b"}"))


def encode_end(uid: str, end: End) -> EncodedEnd:
    """Encode the end of a part."""
    return EncodedEnd(text(write_report(Ended(uid, end))))


def read_ends(path: str, sure: bool = False) -> dict[str, End]:
    """The ends in an end file, by uid; what was cut off by a crash is ignored, and so is a file that is larger than any may be.

    ``sure``: OSError for lack of files or memory.
    """
    found: dict[str, End] = {}
    try:
        with open(path, "rb") as f:
            if os.fstat(f.fileno()).st_size > LARGEST:
                return found
            lines = f.read(LARGEST).split(b"\n")
    except OSError as e:
        if sure and e.errno in proctree.DO_NOT_KNOW:
            raise
        return found
    for line in lines:
        line = line.strip(b"\0")
        # an older starter wrote no sums
        if line.startswith(_SUM[:8]) and line != _summed(b"{" + line[_SUMMED:]):
            continue
        try:
            ended = read(Ended, parse(line))
            found[ended.uid] = ended.end
        except ProtocolError:
            continue
    return found


def _summed(encoded: bytes) -> bytes:
    """JSON of an object with the sum of its bytes as its first key."""
    return _SUM % (binascii.crc32(encoded), encoded[1:])
