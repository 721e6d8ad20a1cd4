"""What the agent's log says of masters while none is there: each line once, however long it lasts."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from agent.stream import Stream


def test_two_masters_that_are_not_there_fill_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    nothing = cast(Any, None)
    stream = Stream(nothing, ["m1", "m2"], nothing, nothing, nothing, nothing)
    for _ in range(100):
        stream.say_of("m1", "no master at m1: refused")
        stream.say_of("m2", "no master at m2: timeout")
    stream.say_of("m2", "obeys the master at m2")
    stream.say_of("m2", "no master at m2: timeout")
    assert [record.message[:15] for record in caplog.records] == [
        "no master at m1",
        "no master at m2",
        "obeys the maste",
        "no master at m2",
    ]
