"""Decisions change nothing: every public function of ``lavad.core.decide`` is wrapped to compare the cluster before and after it.

Rule: ``watch_decisions`` runs before test modules import what it wraps; a conftest calls it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from lavad.core import decide
from lavad.core.cluster.cluster import Cluster
from tests.support.worlds.snapshot import difference, snapshot

MOST_ROWS = 500
"""Larger clusters are not compared: tests of what a decision costs measure it."""


def everything(cluster: Cluster) -> dict[str, Any]:
    """As ``snapshot``, with what a batch has changed so far and the indexes that only decisions read.

    ``Cluster.names`` is left out: it is built when it is first read.
    """
    tables = (
        "jobs",
        "arrays",
        "specs",
        "hosts",
        "queues",
        "charges",
        "learnt",
        "paces",
        "tokens",
        "ended",
        "groups",
        "reservations",
    )
    conditions = cluster.conditions
    return snapshot(cluster) | {
        "tables": {name: (dict(getattr(cluster, name).rows), dict(getattr(cluster, name).changed)) for name in tables},
        "suspended": set(cluster.suspended),
        "promised": set(cluster.promised),
        "conditions": {depend: list(condition.waiters) for depend, condition in conditions.rows.items()},
        "named": {jobs: list(one.conditions) for jobs, one in conditions.named.sets.items()},
        "timed": list(conditions.timed),
    }


class Watch:
    """What was compared; nested calls are part of the outermost."""

    def __init__(self) -> None:
        self.compared: set[str] = set()
        self._inside = False

    def wrap(self, function: Callable[..., Any], cluster_at: int) -> Callable[..., Any]:
        """The function, failing where it changes its cluster."""

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            cluster = kwargs.get("cluster", args[cluster_at] if len(args) > cluster_at else None)
            if self._inside or not isinstance(cluster, Cluster) or len(cluster.jobs.rows) > MOST_ROWS:
                return function(*args, **kwargs)
            answer = self._checked(function, cluster, lambda: function(*args, **kwargs))
            return self._steps(function, cluster, answer) if inspect.isgenerator(answer) else answer

        return call

    def _checked(self, function: Callable[..., Any], cluster: Cluster, go: Callable[[], Any]) -> Any:
        before = everything(cluster)
        self._inside = True
        try:
            return go()
        finally:
            self._inside = False
            self.compared.add(function.__qualname__)
            changed = difference(before, everything(cluster))
            assert not changed, f"{function.__qualname__} changed its cluster: {changed}"

    def _steps(self, function: Callable[..., Any], cluster: Cluster, answer: Iterator[Any]) -> Iterator[Any]:
        """A decision that comes piece by piece: who asked may apply each before the next."""
        end = object()
        while (piece := self._checked(function, cluster, lambda: next(answer, end))) is not end:
            yield piece


WATCH = Watch()


def _cluster_at(function: object) -> int:
    """Which parameter is the cluster; -1: none."""
    if not isinstance(function, FunctionType) or function.__name__.startswith("_"):
        return -1
    names = list(inspect.signature(function).parameters)
    return names.index("cluster") if "cluster" in names else -1


def watch_decisions() -> None:
    """Wrap what decides, in the modules of decide."""
    for found in pkgutil.walk_packages(decide.__path__, f"{decide.__name__}."):
        module = importlib.import_module(found.name)
        for owner in (module, *(value for value in vars(module).values() if inspect.isclass(value))):
            for name, function in list(vars(owner).items()):
                at = _cluster_at(function)
                if at >= 0 and function.__module__ == module.__name__:
                    setattr(owner, name, WATCH.wrap(function, at))
