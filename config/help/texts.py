"""Blocks of lines ``NAME  text``."""

from __future__ import annotations


def read_texts(block: str) -> dict[str, str]:
    """Name to text."""
    found = {}
    for line in block.splitlines():
        name, text = line.split(None, 1)
        found[name] = text
    return found
