"""Fixtures that several integration tests share."""

from tests.support.starters import rig

__all__ = ["rig"]
