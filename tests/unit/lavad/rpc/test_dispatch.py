"""The frame of an ask: its size by kind, and the bounds of its fields."""

from __future__ import annotations

import json

import msgspec
import pytest

from lavad.core.lang import asks, bounds
from lavad.core.lang.asks import Refused
from lavad.rpc.dispatch import decoded
from proto.version import PROTOCOL

KINDS = sorted(asks.Ask.__subclasses__(), key=lambda kind: kind.__name__)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        ({"ask": "kill", "uuid": "u" * 65}, "uuid is too long (at most 64)"),
        ({"ask": "kill", "jobs": {"ids": ["1" * 5000]}}, "jobs.ids[0] is too long (at most 4096)"),
        ({"ask": "kill", "signal": 2**31}, "Expected `int` <= 2147483647 - at `$.signal`"),
        ({"ask": "wait", "job": 10**30}, "Expected `int` <= 2147483647 - at `$.job`"),
        ({"ask": "move", "job": "1", "top": True, "place": -(2**31) - 1}, "Expected `int` >= -2147483648 - at `$.place`"),
        ({"ask": "submit", "command": "c", "options": {"n": ["1"] * 10_002}}, "options[...]: more than 10001 values"),
    ],
)
def test_what_is_beyond_them_is_refused_in_one_line(frame: dict[str, object], why: str) -> None:
    with pytest.raises(Refused) as refused:
        decoded(json.dumps(frame).encode())
    assert refused.value.text == f"Bad request: {why}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_frame_is_no_larger_than_its_kind_needs(kind: type[asks.Ask]) -> None:
    name = str(kind.__struct_config__.tag)
    frame = b'{"ask":"%s","uuid":"%s"}' % (name.encode(), b" " * kind.most_bytes)
    with pytest.raises(Refused, match="the frame is too large"):
        decoded(frame)
    carries = {"submit", "bulk", "modify", "query"}
    lists = {"kill", "stop", "resume", "switch", "requeue", "checkpoint", "migrate", "post"}
    assert kind.most_bytes == (bounds.LARGEST if name in carries else bounds.LISTS if name in lists else bounds.LARGE)


def test_a_command_may_name_very_many_jobs() -> None:
    frame = msgspec.json.encode({"ask": "kill", "jobs": {"ids": [str(10**9 + n) for n in range(bounds.MAX_IDS)]}})
    assert len(decoded(frame).jobs.ids) == bounds.MAX_IDS  # type: ignore[attr-defined]


def test_a_query_may_bring_a_file() -> None:
    """An lsb.acct of some thousand jobs, of ``bacct -f``."""
    frame = msgspec.json.encode({"ask": "query", "command": "bacct", "options": {"f": "x" * (8 << 20)}})
    assert len(decoded(frame).options["f"]) == 8 << 20  # type: ignore[attr-defined]


def test_a_newer_command_is_understood_in_what_both_know() -> None:
    assert decoded(json.dumps({"ask": "kill", "v": PROTOCOL + 1}).encode()) == asks.Kill(v=PROTOCOL + 1)
    with pytest.raises(Refused) as refused:
        decoded(json.dumps({"ask": "kill", "v": PROTOCOL + 1, "gently": True}).encode())
    assert refused.value.text == (
        "Bad request: Object contains unknown field `gently`"
        f" (the command speaks protocol {PROTOCOL + 1}, lavad {PROTOCOL}: upgrade lavad first)"
    )
    with pytest.raises(Refused, match=r"unknown field `gently`$"):
        decoded(b'{"ask": "kill", "gently": true}')


def test_a_command_of_before_names_no_protocol() -> None:
    assert decoded(b'{"ask": "kill"}') == asks.Kill(v=1)
    with pytest.raises(Refused, match=r"the command speaks protocol -1, lavad of lava \S+ speaks \d to \d: upgrade the command$"):
        decoded(b'{"ask": "kill", "v": -1}')
