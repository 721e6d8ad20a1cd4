"""Fixtures of the native commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.native.build import built
from tests.unit.cli.native.installed import Installed


@pytest.fixture(scope="session")
def executable() -> bytes:
    made = built()
    if made is None:
        pytest.skip("no C compiler")
    return made


@pytest.fixture(scope="module")
def installed(executable: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    made = Installed(tmp_path_factory.mktemp("native"), executable)
    yield made
    made.end()
