"""Long lines of ``-l``: cut at column 79 by character count, words too, continued at column 21. As LSF does.

Rule: a blank at which a line is cut is not carried to the next one.
"""

from __future__ import annotations

WIDTH = 79
INDENT = " " * 21
_REST = WIDTH - len(INDENT)
RULE = "-" * 78 + "\n"


def wrap(text: str, unformatted: bool = False) -> str:
    """The lines of a paragraph; a text that fills its last line is followed by an indented empty one (LSF's way)."""
    if unformatted or len(text) < WIDTH:
        return text + "\n"
    lines = [text[:WIDTH]]
    at = WIDTH
    while len(lines[-1]) == WIDTH:
        at += text.startswith(" ", at)
        lines.append(INDENT + text[at : at + _REST])
        at += _REST
    return "\n".join(lines) + "\n"
