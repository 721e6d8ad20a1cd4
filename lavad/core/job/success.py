"""When a job with roles is done: its success rule, read into terms.

Rule: pure. A rule is alternatives with ``|`` between them; each is terms with ``&`` between them, all of which have to hold.
A term is roles with commas, each perhaps with indices (``worker[0]``, ``worker[2-5]``), or ``all``: these have to end well;
``any``, ``any(ROLES)``, ``any(NUMBER,ROLES)``: one or so many of them; ``least(…)``: so many, once all have ended.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)(?:\[(\d{1,6})(?:-(\d{1,6}))?\])?", re.ASCII)
MAX_INDEX = 999_999


class Word(NamedTuple):
    """A role, and the first and last index of its tasks that are meant."""

    role: str
    first: int = 0
    last: int = MAX_INDEX


class Term(NamedTuple):
    """``words`` none: all roles. ``number``: how many of these tasks; 0: all, -1: none, which is a mistake. ``late``: once all
    have ended.
    """

    words: tuple[Word, ...] = ()
    number: int = 0
    late: bool = False


@lru_cache(maxsize=256)
def alternatives(rule: str) -> tuple[tuple[Term, ...], ...]:
    """The terms of each alternative. Raises ValueError with the word that is none."""
    return tuple(tuple(_term(text.strip()) for text in one.split("&")) for one in (rule or "all").split("|"))


def is_some(rule: str) -> bool:
    """Whether the job may be done though a task has failed."""
    found = alternatives(rule)
    return len(found) > 1 or any(term.number for term in found[0])


def _term(text: str) -> Term:
    kind, bracket, rest = text.partition("(")
    if kind in ("any", "least") and (not bracket or rest.endswith(")")):
        number, _, named = rest[:-1].partition(",")
        if not number.isdecimal():
            number, named = "1", rest[:-1]
        if bracket and rest == ")":
            raise ValueError(text)
        return Term(_words(named) if named else (), int(number[:9]) or -1, kind == "least")
    return Term(() if text == "all" else _words(text))


def _words(text: str) -> tuple[Word, ...]:
    return tuple(map(_word, text.split(",")))


def _word(text: str) -> Word:
    match = _WORD.fullmatch(text)
    if match is None:
        raise ValueError(text)
    first = int(match[2] or 0)
    return Word(match[1], first, int(match[3] or first) if match[2] else MAX_INDEX)
