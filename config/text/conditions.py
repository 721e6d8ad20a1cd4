"""`#if time(…)` of LSF's files: which lines hold at a time of the week.

Rule: pure; times are minutes of a week that begins on Sunday 0:00, local time.
"""

import re

from config.text.units import week_spans

_TOKEN = re.compile(r"\s*(?:(time)\s*\(([^()]*)\)|(&&|\|\||[!()]))", re.IGNORECASE)
_ZONE = re.compile(r"[A-Z]{1,5}([+-]?[0-9]{1,2})?")
_LARGEST = 2000


def holds(text: str, minute: int) -> tuple[bool, tuple[str, ...], str]:
    """(whether it is true, the windows that it names, a time zone that it names); raises ValueError with words for the user."""
    tokens: list[str | bool] = []
    windows: list[str] = []
    zone = ""
    at = 0
    text = text.strip()
    while at < len(text) and len(tokens) < _LARGEST:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"'{text[:50]}' is not time(window …), with &&, || and !")
        if match[1]:
            words = match[2].split()
            if words and _ZONE.fullmatch(words[-1]):
                zone = words.pop()
            windows += words
            tokens.append(any(first <= minute < last for first, last in week_spans(tuple(words))))
        else:
            tokens.append(match[3])
        at = match.end()
    value, rest = _either(tokens)
    if rest or not windows:
        raise ValueError(f"'{text[:50]}' is not time(window …), with &&, || and !")
    return value, tuple(windows), zone


def _either(tokens: list[str | bool]) -> tuple[bool, list[str | bool]]:
    value, rest = _both(tokens)
    while rest[:1] == ["||"]:
        other, rest = _both(rest[1:])
        value = value or other
    return value, rest


def _both(tokens: list[str | bool]) -> tuple[bool, list[str | bool]]:
    value, rest = _one(tokens)
    while rest[:1] == ["&&"]:
        other, rest = _one(rest[1:])
        value = value and other
    return value, rest


def _one(tokens: list[str | bool]) -> tuple[bool, list[str | bool]]:
    negated = False
    while tokens[:1] == ["!"]:
        negated, tokens = not negated, tokens[1:]
    if not tokens:
        raise ValueError("the condition ends too early")
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        first, rest = _either(rest)
        if rest[:1] != [")"]:
            raise ValueError("a '(' is not closed")
        rest = rest[1:]
    if not isinstance(first, bool):
        raise ValueError(f"'{first}' stands where time(window …) is expected")
    return first != negated, rest
