"""Lines of ranks: whole, labelled, none lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.starter.system.stdio import MAX_LINE, Lines


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_lines_lose_nothing_and_pass_only_whole_lines(chunks: list[bytes]) -> None:
    lines = Lines()
    passed = [lines.feed(c) for c in chunks]
    assert all(p == b"" or p.endswith(b"\n") for p in passed)
    text = b"".join(chunks)
    assert b"".join(passed) + lines.end() == text + (b"\n" if text and not text.endswith(b"\n") else b"")


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_every_line_gets_its_label(chunks: list[bytes]) -> None:
    lines = Lines(b"[3] ")
    text = b"".join([lines.feed(c) for c in chunks]) + lines.end()
    plain = b"".join(chunks)
    wanted = plain.split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    assert text == b"".join(b"[3] " + line + b"\n" for line in wanted)


def test_an_endless_line_goes_out_in_pieces() -> None:
    assert Lines().feed(b"x" * (MAX_LINE + 1)) == b"x" * (MAX_LINE + 1)
