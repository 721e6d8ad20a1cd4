"""Lines of the daemons' logs: whatever jobs and users put into a name, a command or a reason, it makes no line and no colour.

Rule: a record is one line; only the lines of a traceback follow it, indented. What a terminal would obey is shown as Python would
write it (``\\n``, ``\\x1b``), and a record ends after LONGEST characters.
"""

from __future__ import annotations

import logging
from typing import TextIO

LONGEST = 16_384
INDENT = "    "


def escaped(text: str) -> str:
    """The text without anything that is no plain character."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(text)} characters)"
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


def log_to(stream: TextIO | str, form: str) -> None:
    """Log to a stream, or to the file of this name, in lines of this format."""
    handler = logging.FileHandler(stream) if isinstance(stream, str) else logging.StreamHandler(stream)
    handler.setFormatter(OneLine(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
