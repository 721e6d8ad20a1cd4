"""What the jobs of an executor ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class JobSettings(NamedTuple):
    """What the jobs of an executor ask for."""

    options: Mapping[str, object]
    env: Mapping[str, str]
    cwd: str | None
    python: str
    ranks: int
    retries: int
    initializer: bytes | None
    main: tuple[str, str] | None
    """Where the main module is."""
    folder: str | None
    most: int | None
    """Jobs at a time."""
