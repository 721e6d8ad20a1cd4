"""The user groups of a job (``-G``): the one that it counts for, or (``~group …``) those that it does not count for."""

from __future__ import annotations

_NONE: frozenset[str] = frozenset()


def named_group(given: str) -> str:
    """The user group that a job is submitted for; "": it names none, or only groups to leave out."""
    return "" if given.startswith("~") else given


def left_out(given: str) -> frozenset[str]:
    """The user groups that a job does not count for."""
    return frozenset(word.removeprefix("~") for word in given.split()) if given.startswith("~") else _NONE
