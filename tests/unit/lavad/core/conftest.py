"""The bench of the decision tests."""

from __future__ import annotations

import pytest

from tests.support.worlds.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
