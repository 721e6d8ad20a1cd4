"""`Begin X … End X` sections of LSF's files, as rows of named cells.

A vertical section (`KEY = value` lines) is one row; a horizontal one (a line of names, then lines of
values) has a row a line. So every reader works on rows and never sees which form a site chose.
Rule: any text at all is taken; what makes no sense is reported.
"""

import re

import msgspec

from config.model.problems import Place, Problems
from config.text.lines import BLANKS, Line, Reading, lines_of

_KEY = re.compile(r"([A-Za-z_][A-Za-z0-9_./-]*)\s*=(.*)", re.DOTALL)
_CLOSING = {")": "(", "]": "["}


class Cell(msgspec.Struct, frozen=True):
    """`name` as the file writes it. `value` without the parentheses or quotes around the whole."""

    name: str
    value: str
    place: Place


class Row(msgspec.Struct, frozen=True):
    """Cells by upper-case name."""

    place: Place
    cells: dict[str, Cell]

    def text(self, name: str) -> str:
        """The cell's value; "" where it is missing, `()` or `-`."""
        cell = self.cells.get(name)
        return "" if cell is None or cell.value == "-" else cell.value


class Section(msgspec.Struct, frozen=True):
    name: str
    place: Place
    rows: tuple[Row, ...]


def read_sections(text: str, file: str, reading: Reading) -> list[Section]:
    """The sections of a file, and of what it includes."""
    problems = reading.problems
    sections: list[Section] = []
    body: list[Line] | None = None
    name, begin = "", Place(file, 0)
    for line in lines_of(text, file, reading):
        words = line.text.split(None, 2)
        keyword = words[0].lower()
        if keyword == "begin" and len(words) > 1 and words[1][:1] != "=":
            if body is not None:
                problems.error(begin, f"section {name} has no 'End {name}'")
                sections.append(Section(name, begin, _rows(name, body, problems)))
            name, begin, body = words[1], line.place, []
        elif keyword == "end" and body is not None and words[1:2] != ["="]:
            if len(words) > 1 and words[1].lower() != name.lower():
                problems.error(line.place, f"'End {words[1]}' ends section {name}")
            sections.append(Section(name, begin, _rows(name, body, problems)))
            body = None
        elif body is None:
            problems.error(line.place, f"'{_short(line.text)}' stands outside any section")
        else:
            body.append(line)
    if body is not None:
        problems.error(begin, f"section {name} has no 'End {name}'")
        sections.append(Section(name, begin, _rows(name, body, problems)))
    return sections


def split_words(text: str) -> list[str]:
    """Split at blanks outside quotes, () and []; brackets that never close are plain characters."""
    words: list[str] = []
    depth, start, quoted = 0, -1, False
    balanced = _balanced(text)
    for position, char in enumerate(text):
        if char == '"' and (quoted or text.find('"', position + 1) > 0):
            quoted = not quoted
        elif not quoted and balanced and char in "([":
            depth += 1
        elif not quoted and balanced and char in ")]":
            depth -= 1
        if char in BLANKS and not quoted and depth <= 0:
            if start >= 0:
                words.append(text[start:position])
            start = -1
        elif start < 0:
            start = position
    if start >= 0:
        words.append(text[start:])
    return words


def bare(text: str) -> str:
    """Without the quotes or the one pair of parentheses that enclose the whole."""
    text = text.strip(BLANKS)
    if len(text) >= 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        return text[1:-1].strip(BLANKS)
    if text[:1] == "(" and text[-1:] == ")" and _closes_at_end(text):
        return text[1:-1].strip(BLANKS)
    return text


def _rows(name: str, lines: list[Line], problems: Problems) -> tuple[Row, ...]:
    if not lines:
        return ()
    if _KEY.match(lines[0].text):
        return (_vertical(name, lines, problems),)
    return tuple(_horizontal(name, lines, problems))


def _vertical(name: str, lines: list[Line], problems: Problems) -> Row:
    cells: dict[str, Cell] = {}
    for line in lines:
        match = _KEY.match(line.text)
        if not match:
            problems.error(line.place, f"section {name}: '{_short(line.text)}' is not KEY = value")
            continue
        key, value = match.group(1), match.group(2)
        if key.upper() in cells:
            problems.warn(line.place, f"section {name}: {key} is set twice; this one holds")
        cells[key.upper()] = Cell(key, bare(value), line.place)
    return Row(lines[0].place, cells)


def _horizontal(name: str, lines: list[Line], problems: Problems) -> list[Row]:
    header = lines[0].text.split()
    seen: set[str] = set()
    for key in header:
        if key.upper() in seen:
            problems.error(lines[0].place, f"section {name}: column {_short(key)} appears twice")
        seen.add(key.upper())
    rows = []
    for line in lines[1:]:
        words = split_words(line.text)
        if len(words) != len(header):
            text = f"section {name}: line of '{_short(words[0])}' has {len(words)} values for {len(header)} columns"
            problems.error(line.place, text)
            continue
        cells = {key.upper(): Cell(key, bare(word), line.place) for key, word in zip(header, words, strict=True)}
        rows.append(Row(line.place, cells))
    return rows


def _balanced(text: str) -> bool:
    stack: list[str] = []
    for char in text:
        if char in "([":
            stack.append(char)
        elif char in ")]" and (not stack or stack.pop() != _CLOSING[char]):
            return False
    return not stack


def _closes_at_end(text: str) -> bool:
    depth = 0
    for position, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
