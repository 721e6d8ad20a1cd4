"""Lines of ranks: whole, labelled, none lost. Named pipes: their other end is waited for, but not for ever."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.protocol.part import OutputFile
from agent.starter.system import stdio
from agent.starter.system.stdio import MAX_LINE, Lines, Refused, open_input, open_output


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


@pytest.mark.parametrize(("kind", "opened"), [("output", lambda path: open_output(OutputFile(path))), ("input", open_input)])
def test_a_pipe_without_another_end_is_refused(
    kind: str, opened: Callable[[str], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(stdio, "PATIENCE", 0.05)
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Refused) as refused:
        opened(str(tmp_path / "pipe"))
    assert refused.value.code == kind
    assert refused.value.reason == f"{kind} file {tmp_path}/pipe: nobody opened the other end of this pipe within 0.05 s"
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_pipe_waits_for_its_reader(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    fd = open_output(OutputFile(str(pipe)))
    os.write(fd, b"a line\n")
    os.close(fd)
    reader.join()
    assert got == [b"a line\n"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
