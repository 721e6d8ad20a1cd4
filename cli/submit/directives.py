"""The ``#BSUB`` lines of a script.

Rule: a directive begins its line; an indented one is a comment. Its option may follow the mark without a blank
(``#BSUB-n 4``). A blank and ``#`` end it, a backslash at its end continues it, quotes hold words together.
"""

from __future__ import annotations

from cli.client.context import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options, Table

MARK = "#BSUB"


def directive_lines(script: str) -> list[tuple[int, str]]:
    """The texts behind the marks with their line numbers, continued lines joined."""
    found: list[tuple[int, str]] = []
    if MARK not in script:
        return found
    lines = script.split("\n")
    at = 0
    while at < len(lines):
        number, text = at + 1, _behind_mark(lines[at])
        at += 1
        if text is None:
            continue
        while text.endswith("\\") and at < len(lines):
            following = _behind_mark(lines[at])
            text = text[:-1] + " " + (lines[at].lstrip("#").strip() if following is None else following)
            at += 1
        found.append((number, text.removesuffix("\\")))
    return found


def _behind_mark(line: str) -> str | None:
    if not line.startswith(MARK):
        return None
    rest = line[len(MARK) :]
    return rest.strip() if not rest or rest[0].isspace() or rest[0] == "-" else None


_MEANT = frozenset("\\'\"#")
"""Characters that are not always themselves."""


def words_of(text: str) -> list[str]:
    """A directive's words; ValueError for a quote that is not closed."""
    return text.split() if _MEANT.isdisjoint(text) else _parsed(text)


def _parsed(text: str) -> list[str]:
    words: list[str] = []
    word: str | None = None
    quote = ""
    escaped = False
    for char in text:
        if escaped:
            word = (word or "") + ("" if quote != '"' or char in '"\\$`' else "\\") + char
            escaped = False
        elif quote == char:
            quote = ""
        elif quote == "'" or (quote and char != "\\"):
            word = (word or "") + char
        elif char == "\\":
            escaped = True
            word = word or ""
        elif char in "'\"":
            quote = char
            word = word or ""
        elif char.isspace():
            if word is not None:
                words.append(word)
            word = None
        elif char == "#" and word is None:
            break
        else:
            word = (word or "") + char
    if quote or escaped:
        raise ValueError("No closing quotation")
    if word is not None:
        words.append(word)
    return words


def read_directives(script: str, table: Table) -> Options:
    """The options that a script gives itself; of an option in several lines the last wins."""
    from cli.client.options import read_command_options

    words: list[str] = []
    for number, text in directive_lines(script):
        try:
            line = words_of(text)
        except ValueError:
            raise Fail(f"Line {number} of the script: a quote is not closed") from None
        _, left = read_command_options(table, line)
        if left:
            raise Fail(f"Line {number} of the script: <{left[0]}> is not an option")
        words += line
    return read_command_options(table, words)[0]
