"""Pieces of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape


def cell(text: str) -> str:
    """Plain words in a cell of a table: what Markdown would read as something else is escaped."""
    text = re.sub(r"\s*\n\s*", " ", text)
    return text.replace("\\", "\\\\").replace("<", "\\<").replace("|", "\\|").replace("*", "\\*")


def code(text: str) -> str:
    """As it is typed. A bar would end the cell, also in backquotes."""
    return f"<code>{escape(text, quote=False).replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of cells that are Markdown already; "" where it has no row."""
    lines = [f"| {' | '.join(row)} |\n" for row in rows]
    head = list(titles)
    return "".join([f"| {' | '.join(head)} |\n", f"|{'-|' * len(head)}\n", *lines]) if lines else ""


def sentence(text: str) -> str:
    """With a capital in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""
