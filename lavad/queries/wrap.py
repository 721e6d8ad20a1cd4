"""Long lines of ``-l``: cut at column 79 by character count, words too, continued at column 21. As LSF does."""

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
    lines += [INDENT + text[at : at + _REST] for at in range(WIDTH, len(text) + 1, _REST)]
    return "\n".join(lines) + "\n"
