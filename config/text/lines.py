"""The lines of a file that hold something: comments gone, continuations joined, #INCLUDE and #if followed.

Rule: any text at all is taken; what makes no sense is reported.
"""

import os
import re
from collections.abc import Callable

import msgspec

from config.model.problems import Place, Problems
from config.text.units import week_spans

BLANKS = " \t\r\f\v\0"
DEEPEST = 16
"""How many files may include one another."""

# `# if you like` is a plain comment: a directive has no blank after its `#`, and its own form behind it.
_TIME = r"(?=\s+[!(\s]*time\b)"
_BARE_INCLUDE = re.compile(r"#INCLUDE\s+[^\s\"]+")
_DIRECTIVE = re.compile(rf"#(if{_TIME}|elif{_TIME}|else(?=\s*$)|endif(?=\s*$)|include(?=\s+\"))(.*)", re.IGNORECASE)


class Line(msgspec.Struct, frozen=True):
    place: Place
    text: str


class Reading:
    """What reading depends on beside a file's text, and what it comes upon.

    ``read``: the text of an included file by its path, None where there is none. ``minute``: of the week, for #if.
    """

    def __init__(self, problems: Problems, read: Callable[[str], str | None] | None = None, minute: int = 0) -> None:
        self.problems = problems
        self.read = read or (lambda path: None)
        self.minute = minute
        self.windows: dict[str, None] = {}
        """Time windows that #if asked about: at their edges the files say something else."""


class _Branch:
    """One #if: whether the lines being read hold, and whether an earlier branch of it has held."""

    def __init__(self, place: Place, holds_now: bool) -> None:
        self.place = place
        self.holds = holds_now
        self.had = holds_now


def lines_of(text: str, file: str, reading: Reading) -> list[Line]:
    """All lines, with those of included files in their place."""
    return list(_read(text, file, file, reading, (os.path.realpath(file),)))


def _read(text: str, file: str, root: str, reading: Reading, stack: tuple[str, ...]) -> list[Line]:
    lines: list[Line] = []
    parts: list[str] = []
    start = 0
    branches: list[_Branch] = []
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip(BLANKS)
        place = Place(file, number, root)
        directive = None if parts else _DIRECTIVE.match(line)
        if directive and directive.group(1).lower() != "include":
            _branch(directive.group(1).lower(), directive.group(2), place, branches, reading)
            continue
        if not all(branch.holds for branch in branches):
            continue
        if directive:
            lines += _included(directive.group(2), place, root, reading, stack)
            continue
        if _BARE_INCLUDE.fullmatch(line):
            reading.problems.warn(place, "#INCLUDE: without double quotes around the path this line is a comment")
        line = _without_comment(line).rstrip(BLANKS)
        start = start if parts else number
        if line.endswith("\\"):
            parts.append(line[:-1].rstrip(BLANKS))
            continue
        _add(lines, [*parts, line], Place(file, start, root))
        parts = []
    _add(lines, parts, Place(file, start, root))
    for branch in branches:
        reading.problems.error(branch.place, "#if has no #endif")
    return lines


def _add(lines: list[Line], parts: list[str], place: Place) -> None:
    joined = " ".join(parts).strip(BLANKS)
    if joined.strip():
        lines.append(Line(place, joined))


def _included(rest: str, place: Place, root: str, reading: Reading, stack: tuple[str, ...]) -> list[Line]:
    match = re.fullmatch(r'\s+"([^"\0]+)"\s*', rest)
    path = os.path.join(os.path.dirname(place.file), match.group(1)) if match else ""
    if not path:
        reading.problems.error(place, "#INCLUDE: the path of a file in double quotes is expected")
        return []
    real = os.path.realpath(path)
    if real in stack or len(stack) > DEEPEST:
        reading.problems.error(place, f"#INCLUDE: {path[:200]} includes itself, or files include one another too deeply")
        return []
    text = reading.read(path)
    if text is None:
        reading.problems.error(place, f"#INCLUDE: there is no file {path[:200]}")
        return []
    return _read(text, path, root, reading, (*stack, real))


def _branch(word: str, rest: str, place: Place, branches: list[_Branch], reading: Reading) -> None:
    if word == "if":
        branches.append(_Branch(place, _asked(rest, place, reading)))
    elif not branches:
        reading.problems.error(place, f"#{word} without #if")
    elif word == "endif":
        branches.pop()
    else:
        own = branches[-1]
        now = (word == "else" or _asked(rest, place, reading)) and not own.had
        own.holds, own.had = now, own.had or now


def _asked(text: str, place: Place, reading: Reading) -> bool:
    try:
        value, windows, zone = _holds(text, reading.minute)
    except ValueError as wrong:
        reading.problems.error(place, f"#if: {str(wrong)[:200]}")
        return False
    if zone:
        reading.problems.warn(place, f"#if: time zone {zone} has no effect: the time of the master's host is taken")
    reading.windows.update(dict.fromkeys(windows))
    return value


def _without_comment(line: str) -> str:
    """Cut at the first `#` outside double quotes; a quote that never closes is a plain character."""
    quoted = False
    for position, char in enumerate(line):
        if char == '"' and (quoted or line.find('"', position + 1) > 0):
            quoted = not quoted
        elif char == "#" and not quoted:
            return line[:position]
    return line


_TOKEN = re.compile(r"\s*(?:(time)\s*\(([^()]*)\)|(&&|\|\||[!()]))", re.IGNORECASE)
_ZONE = re.compile(r"[A-Z]{1,5}([+-]?[0-9]{1,2})?")
_LARGEST = 2000
_MOST_BRACKETS = 100
"""Each that is open takes of the interpreter's stack while the condition is read."""


def _holds(text: str, minute: int) -> tuple[bool, tuple[str, ...], str]:
    """Whether `#if time(…)` is true at a minute of the week, which begins on Sunday 0:00, local time.

    (whether it is true, the windows that it names, a time zone that it names); raises ValueError with words for the user.
    """
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
    if tokens.count("(") > _MOST_BRACKETS:
        raise ValueError(f"more than {_MOST_BRACKETS} '(' in one condition")
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
