"""Fixtures of the long tests."""

from __future__ import annotations

from tests.support.daemons.gangs import two
from tests.support.daemons.starters import rig
from tests.support.live.fixtures import cluster, own_cluster

__all__ = ["cluster", "own_cluster", "rig", "two"]
