"""Fixtures of the long tests."""

from __future__ import annotations

from tests.support.live.fixtures import cluster, own_cluster

__all__ = ["cluster", "own_cluster"]
