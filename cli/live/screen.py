"""A terminal that is drawn again and again: its own page, keys without Enter, colours; and everything as it was at the end.

Rule: colours only on a terminal, and not with NO_COLOR (https://no-color.org).
"""

from __future__ import annotations

import os
import select
import signal
import termios
import tty
from collections.abc import Mapping, Sequence
from types import FrameType, TracebackType
from typing import NamedTuple

STYLES = {
    "": "",
    "bold": "\x1b[1m",
    "dim": "\x1b[2m",
    "good": "\x1b[32m",
    "warn": "\x1b[33m",
    "bad": "\x1b[31m",
    "head": "\x1b[7m",
}
_PLAIN = "\x1b[0m"
_BEGIN, _END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class Piece(NamedTuple):
    """A text with the name of its style."""

    text: str
    style: str = ""


Line = Sequence[Piece]


def has_colours(environ: Mapping[str, str], descriptor: int) -> bool:
    """Whether what goes there may have colours."""
    return not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb" and os.isatty(descriptor)


def painted(line: Line, width: int, colours: bool) -> str:
    """A line cut at ``width`` characters."""
    found, left = [], width
    for text, style in line:
        shown = text[:left]
        left -= len(shown)
        found.append(f"{STYLES[style]}{shown}{_PLAIN}" if colours and style and shown else shown)
    return "".join(found)


def plain(lines: Sequence[Line]) -> str:
    """As a pipe gets them."""
    return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines)


def bar(share: float, width: int) -> str:
    """``[#####     ]``"""
    filled = min(width, max(0, round(share * width)))
    return f"[{'#' * filled}{' ' * (width - filled)}]"


class Screen:
    """Use it in a ``with``: whatever ends it, the terminal is as it was."""

    def __init__(self, stdin: int, stdout: int, environ: Mapping[str, str]) -> None:
        self._in, self._out = stdin, stdout
        self._colours = has_colours(environ, stdout)
        self._found: list[object] | None = None
        self._before: object = None

    def __enter__(self) -> Screen:
        if os.isatty(self._in):
            self._found = termios.tcgetattr(self._in)
            tty.setcbreak(self._in)
        self._before = signal.signal(signal.SIGTERM, _ended)
        self._write(_BEGIN)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._write(_END)
        if self._found is not None:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._found)  # type: ignore[arg-type]
        signal.signal(signal.SIGTERM, self._before)  # type: ignore[arg-type]

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines, as they are now."""
        try:
            return os.get_terminal_size(self._out)
        except OSError:
            return os.terminal_size((80, 24))

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these from the top on; what does not fit is left out."""
        width, height = self.size
        shown = [painted(line, width, self._colours) + "\x1b[K" for line in lines[:height]]
        self._write("\x1b[H" + "\r\n".join(shown) + "\x1b[J")

    def key(self, seconds: float) -> str:
        """The key that is pressed within this time, "" for none; ``q`` at the end of the input."""
        if self._found is None:
            select.select([], [], [], seconds)
            return ""
        ready, _, _ = select.select([self._in], [], [], seconds)
        if not ready:
            return ""
        data = os.read(self._in, 32)
        return data.decode("utf-8", "replace")[:1] if data else "q"

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._out, data) :]


def _ended(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
