"""The history of a cluster: its events and the recorded inputs of its plans, in order; from its store or from a file.

Rule: a plan follows the event whose number is its version. A file is JSON lines: a header, then
``{"seq": 7, "event": {...}}`` and ``{"cycle": {...}}``; ``.gz`` is unpacked.
"""

from __future__ import annotations

import argparse
import gzip
import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import IO, NoReturn

import msgspec

from config.lsfconf import SITE_ENVDIR
from config.read.load import load
from lavad.configure.database import database_url
from lavad.core.events import AnyEvent
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.local_time import local_time
from lavad.store.read import Reader

AT_ONCE = 5_000
FORMAT = 1
LONGEST = 256 << 20
"""Bytes of a line; the largest that are written are a configuration's, and those of a plan for many jobs."""


class HistoryError(Exception):
    """Why a history cannot be used, in one line."""


class Numbered(msgspec.Struct, frozen=True, gc=False):
    """An event and its number."""

    seq: int
    event: AnyEvent


class _Cycle(msgspec.Struct, frozen=True):
    cycle: RecordedCycle


class _Header(msgspec.Struct, frozen=True):
    lava: str
    format: int


Item = Numbered | RecordedCycle
_encode = msgspec.json.Encoder().encode
_event = msgspec.json.Decoder(Numbered)
_cycle = msgspec.json.Decoder(_Cycle)
_header = msgspec.json.Decoder(_Header)


def of_store(reader: Reader) -> Iterator[Item]:
    """The contents of a store at the time of the call."""
    since = reader.kept_since()
    if since:
        day = local_time(since).strftime("%b %d %Y")
        raise HistoryError(
            f"the store no longer has all events from before {day} (LAVA_HISTORY_DAYS), and a replay needs every one: "
            "export histories with --export, or set LAVA_HISTORY_DAYS=0"
        )
    top = reader.version()
    cycles = _cycles(reader, top)
    following = next(cycles, None)
    seq = 0
    while seq < top:
        rows = reader.events_after(seq, AT_ONCE)
        for seq, event in rows:
            while following is not None and following.version < seq:
                yield following
                following = next(cycles, None)
            if seq <= top:
                yield Numbered(seq, event)
        if not rows:
            return


def _cycles(reader: Reader, top: int) -> Iterator[RecordedCycle]:
    version = -1
    while rows := reader.cycles_after(version, AT_ONCE // 10):
        for row in rows:
            if row.first + row.count - 1 <= top:
                yield row
        version = rows[-1].version


def of_file(path: str) -> Iterator[Item]:
    """What ``write`` wrote; raises ``HistoryError`` with file and line."""
    try:
        with _open(path) as lines:
            yield from _read(path, iter(partial(lines.readline, LONGEST), b""))
    except (OSError, EOFError) as error:
        raise HistoryError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _read(path: str, lines: Iterable[bytes]) -> Iterator[Item]:
    number = 0
    for number, line in enumerate(lines, 1):
        if len(line) == LONGEST:
            raise HistoryError(f"{path}:{number}: a line longer than {LONGEST >> 20} MB")
        try:
            if number == 1:
                _check_header(line)
            elif line.startswith(b'{"cycle"'):
                yield _cycle.decode(line).cycle
            else:
                yield _event.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise HistoryError(f"{path}:{number}: not a line of a history: {error}") from None
    if not number:
        raise HistoryError(f"{path}: empty")


def _check_header(line: bytes) -> None:
    header = _header.decode(line)
    if header.lava != "history" or header.format != FORMAT:
        raise msgspec.ValidationError(f"a history of format {header.format}, this lava reads {FORMAT}")


def write(path: str, items: Iterable[Item]) -> int:
    """Write a history to a file; how many lines. Raises ``HistoryError``."""
    count = 1
    try:
        with _open(path, "wb") as file:
            file.write(_encode(_Header("history", FORMAT)) + b"\n")
            for item in items:
                file.write(_encode(_Cycle(item) if isinstance(item, RecordedCycle) else item) + b"\n")
                count += 1
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror or error}") from None
    return count


def _open(path: str, mode: str = "rb") -> IO[bytes]:
    try:
        return gzip.open(path, mode) if path.endswith(".gz") else open(path, mode)  # type: ignore[return-value]
    except ValueError:
        raise HistoryError(f"{path!r}: not a file name") from None


class Parser(argparse.ArgumentParser):
    """The command line of a tool."""

    def error(self, message: str) -> NoReturn:
        """One line, as every other complaint."""
        self.exit(1, f"{self.prog}: {message}\n")


def add_source(options: argparse.ArgumentParser) -> None:
    """The options that say where."""
    options.add_argument("--dir", default="", help="the folder of a cluster of lava up")
    options.add_argument("--database", default="", metavar="URL", help="the SQLAlchemy URL of a store")
    options.add_argument("--conf", default=os.environ.get("LSF_ENVDIR", SITE_ENVDIR), help=argparse.SUPPRESS)
    options.add_argument("--database-file", default="", help=argparse.SUPPRESS)


def named_store(options: argparse.Namespace) -> str:
    """The URL of the store that the options name; raises StoreRefused where it cannot be read."""
    if options.database:
        return str(options.database)
    named = options.database_file or (os.path.join(options.dir, "run", "database") if options.dir else "")
    return database_url(load(options.conf).config.params, "", named)


def read_source(options: argparse.Namespace, file: str) -> Iterator[Item]:
    """Of ``file`` if one is named, else of the store. Raises ``HistoryError``, ``StoreError`` or OSError."""
    if file:
        yield from of_file(file)
        return
    reader = Reader.open(named_store(options))
    try:
        yield from of_store(reader)
    finally:
        reader.close()
