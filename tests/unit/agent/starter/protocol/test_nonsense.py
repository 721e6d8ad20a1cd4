"""Whatever JSON comes from an agent, or from a shepherd, which is the job's user's: it is a record, or refused as none."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any, cast

import pytest

from agent.starter.protocol.codec import Json, ProtocolError, parse, text
from agent.starter.protocol.orders import find_order, write_order
from agent.starter.protocol.reports import Report, find_report, write_report
from tests.unit.agent.starter.protocol.test_records import ORDERS, REPORTS

VALUES: list[Any] = [
    *(None, True, -1, 1 << 64, 10**400, -(10**400), 1e308, math.inf, math.nan, "", "u", "\ud800", "a" * 5000),
    *([], [[]], [None], {}, {"": {}}, [1, 2, 3, 4, 5, 6, 7, 8, 9], {"a": [1]}),
]
SAMPLES = [*map(write_order, ORDERS), *(write_report(one) for one in cast(list[Report], REPORTS))]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All (object or list, key or index) in what came as JSON."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("seed", range(20))
def test_a_record_with_anything_in_it_is_one_or_none(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        found: Json = parse(text(chance.choice(SAMPLES)))
        for _ in range(chance.randint(1, 3)):
            inside, key = chance.choice([*places(found), (found, "uid")])
            if isinstance(inside, dict) and chance.random() < 0.2:
                inside.pop(key, None)
            else:
                inside[key] = deepcopy(chance.choice(VALUES))
        for read in (find_order, find_report):
            with suppress(ProtocolError):
                read(found)


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b"", b"{}x", b"NaN", b'{"do":' + b"1" * 5000 + b"}"]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(body)
