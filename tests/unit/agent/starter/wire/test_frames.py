"""Frames on the starter's links: cut anywhere, of any bytes, too large."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.wire.frames import FrameError, FrameReader, pack

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(LEAVES, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=9)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5), st.integers(1, 40))
def test_frames_survive_any_cut(objects: list[dict[str, object]], size: int) -> None:
    data = b"".join(map(pack, objects))
    reader = FrameReader()
    found: list[dict[str, object]] = []
    for at in range(0, len(data), size):
        found += reader.feed(data[at : at + size])
    assert found == objects


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    try:
        FrameReader(limit=100).feed(data)
    except FrameError:
        pass


def test_undecodable_file_names_pass() -> None:
    name = os.fsdecode(b"/tmp/\xff\xe9")
    assert FrameReader().feed(pack({"path": name})) == [{"path": name}]


def test_oversized_frames_are_refused_before_they_come() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed((65 << 20).to_bytes(4, "big"))
