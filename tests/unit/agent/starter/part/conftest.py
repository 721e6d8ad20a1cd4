"""Shepherds with native code and without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.native.build import built_library
from tests.support.daemons.both_ways import both_shepherds
from tests.support.daemons.shepherds import Shepherd

ROOT = Path(__file__).resolve().parents[5]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = built_library(str(ROOT))
    if made is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("library") / "parts.so"
    path.write_bytes(made)
    return path


@pytest.fixture
def native(library: Path, tmp_path: Path) -> Iterator[Shepherd]:
    one = Shepherd(tmp_path, library)
    yield one
    assert one.close() == 0, one.noted()


@pytest.fixture(scope="module")
def both(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shepherd, Shepherd]]:
    with both_shepherds(tmp_path_factory.mktemp("both"), library) as ones:
        yield ones
