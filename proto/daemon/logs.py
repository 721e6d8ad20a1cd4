"""Lines of the daemons' logs: whatever jobs and users put into a name, a command or a reason, it makes no line and no colour.

Rule: a record is one line; only the lines of a traceback follow it, indented. What a terminal would obey is shown as Python would
write it (``\\n``, ``\\x1b``), and a record ends after LONGEST characters.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TextIO

from proto.daemon.log_thread import LogThread

LONGEST = 16_384
INDENT = "    "


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def escaped(text: str) -> str:
    """The text without anything that is no plain character."""
    text = _cut(text)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def indented(text: str) -> str:
    """Several lines, as they follow a record."""
    return "\n".join(INDENT + escaped(line) for line in text.split("\n"))


class OneLine(logging.Formatter):
    """The formatter of all daemons."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line itself."""
        record.message = escaped(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: logging._SysExcInfoType) -> str:
        """What follows it."""
        return indented(super().formatException(ei))


class Structured(logging.Formatter):
    """Each record as one JSON object on a line, for programs that collect logs.

    ``template`` is the text before its values are put in, the same for all records of one kind; ``exception`` is a traceback.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The object. ``time`` is in UTC, with milliseconds (RFC 3339)."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "daemon": record.name,
            "pid": os.getpid(),
            "message": _cut(record.getMessage()),
            "template": _cut(str(record.msg)),
        }
        if record.exc_info:
            entry["exception"] = _cut(self.formatException(record.exc_info))
        return json.dumps(entry)


def log_as(log_format: str) -> None:
    """LAVA_LOG_FORMAT: ``json`` for objects from now on; anything else leaves the lines as they are."""
    if log_format.lower() == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(Structured())


def log_to(stream: TextIO | str, form: str) -> None:
    """Log to a stream, or to the file of this name, in lines of this format."""
    handler = logging.FileHandler(stream) if isinstance(stream, str) else LogThread(stream)
    handler.setFormatter(OneLine(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
