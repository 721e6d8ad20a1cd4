"""Wait for a condition with a deadline; the one way a test waits for the outside world."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SLOW = float(os.environ.get("LAVA_TEST_SLOW", "1"))
LONGEST = 0.25
"""Seconds between two looks at most."""


def wait_until(condition: Callable[[], T], timeout: float, what: str | Callable[[], str] = "the condition") -> T:
    """Return the condition's first true value; fail with ``what`` after ``timeout`` seconds (times LAVA_TEST_SLOW).

    A look may be a command to a cluster that others' tests run beside: who has waited long looks more rarely.
    """
    begun = time.monotonic()
    deadline = begun + timeout * SLOW
    while True:
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > deadline:
            text = what() if callable(what) else what
            raise AssertionError(f"waited {timeout * SLOW:.0f} s for {text}")
        time.sleep(min(LONGEST, max(0.02, (now - begun) / 8)))
