"""Users that a test of this folder made on the machine go when all tests are over, whichever process ran them."""

from __future__ import annotations

import pytest

from tests.support.live.captured import remove_users


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Only where no other process of the same run may still need them."""
    if not hasattr(session.config, "workerinput"):
        remove_users()
