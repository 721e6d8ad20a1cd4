"""Times are read in UTC here, whatever the machine is set to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from lavad.queries.frame import formats


@pytest.fixture(autouse=True, scope="package")
def utc() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    formats._short_time.cache_clear()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()
    formats._short_time.cache_clear()
