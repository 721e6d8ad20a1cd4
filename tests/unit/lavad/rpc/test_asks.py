"""Every ask of a caller has one who answers it: a method of Dispatch, or the decision that is registered for it."""

from __future__ import annotations

import msgspec
import pytest

from lavad.core.decide.base.decisions import decides, find_decision
from lavad.core.lang import asks
from lavad.rpc.dispatch import Dispatch, decoded

READ = {asks.Query, asks.Peek}
"""Answered piece by piece, not by a decision."""
KINDS = sorted(set(asks.Ask.__subclasses__()) - READ, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_somebody_answers(kind: type[asks.Ask]) -> None:
    methods = Dispatch.__dict__["_answer"].dispatcher.registry
    assert (kind in methods) or find_decision(kind) is not None


def test_a_second_decision_about_one_ask_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="Post has a decision already"):
        decides(asks.Post)(lambda cluster, ask, caller, now: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "frame", [b'{"ask": "nosuch"}', b'{"ask": "post", "job": "1", "text": "t", "more": 1}', b'{"ask": "ask"}', b"{}"]
)
def test_what_is_no_ask_is_not_decoded(frame: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(frame, type=asks.any_ask())


@pytest.mark.parametrize(("text", "nul"), [(r"printf \u0000", False), (r"\\u0000", False), ("a\0b", True), ("\\\0", True)])
def test_a_nul_character_is_refused_and_what_a_script_calls_it_is_not(text: str, nul: bool) -> None:
    frame = msgspec.json.encode({"ask": "post", "job": "1", "text": text})
    if nul:
        with pytest.raises(asks.Refused, match="a NUL character"):
            decoded(frame)
    else:
        assert decoded(frame) == asks.Post(job="1", text=text)
