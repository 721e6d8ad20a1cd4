"""The line that says how far long work is: on a terminal alone, from the second second on, and gone at the end."""

from __future__ import annotations

import os
import pty
import select
from collections.abc import Callable

import pytest

from lavad import progress
from lavad.progress import Progress, counted, line


@pytest.mark.parametrize(
    ("done", "of", "text"),
    [
        (0, 0, "lava db check: events, 3 s"),
        (12_000, 0, "lava db check: events 12,000, 3 s"),
        (12_000, 40_000, "lava db check: events 12,000 of 40,000, 3 s"),
    ],
)
def test_how_it_reads(done: int, of: int, text: str) -> None:
    assert line("lava db check", "events", done, of, 3.2) == text


def test_items_are_counted() -> None:
    told: list[tuple[str, int, int]] = []
    assert list(counted("ab", lambda *words: told.append(words), "letters")) == ["a", "b"]
    assert told == [("letters", 0, 0), ("letters", 1, 0)]


def test_a_terminal_shows_what_was_told_last_and_is_clean_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.02)
    ours, theirs = pty.openpty()
    try:
        with Progress("lava db backup", theirs) as shown:
            shown.tell("copying", 5, 9)
            seen = _until(ours, b"", lambda seen: b"copying 5 of 9, " in seen)
            shown.tell("looking")
            seen = _until(ours, seen, lambda seen: b"looking, " in seen)
        os.write(theirs, b"the result")
        seen = _until(ours, seen, lambda seen: seen.endswith(b"the result"))
        assert seen.endswith(b" s\r\x1b[Kthe result")
    finally:
        os.close(ours)
        os.close(theirs)


def test_where_there_is_no_terminal_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.01)
    reader, writer = os.pipe()
    with Progress("lava db backup", writer) as shown:
        shown.tell("copying")
        assert not select.select([reader], [], [], 0.1)[0]
    os.close(writer)
    assert os.read(reader, 1) == b""
    os.close(reader)


def _until(terminal: int, seen: bytes, enough: Callable[[bytes], bool]) -> bytes:
    while not enough(seen):
        assert select.select([terminal], [], [], 60)[0], seen
        seen += os.read(terminal, 4096)
    return seen
