"""Registry of decisions by kind of request: a decision registers itself with ``@decides(asks.Post)``.

Rule: a request has one decision at most. Decisions that need more than the cluster and the request (finished jobs or texts from
the store, an environment) are not registered: ``lavad.rpc.dispatch`` collects their inputs and calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Ask, Caller

A = TypeVar("A", bound=Ask)
Decision = Callable[[Cluster, A, Caller, float], Decided]
TimedDecision = Callable[[Cluster, A, Caller, float, datetime], Decided]
"""A decision that reads times of day and therefore takes the local time too."""

_DECISIONS: dict[type[Ask], TimedDecision[Any]] = {}


def decides(ask: type[A]) -> Callable[[Decision[A]], Decision[A]]:
    """Register the function as the decision for this kind of request."""

    def register(decision: Decision[A]) -> Decision[A]:
        def without_local_time(cluster: Cluster, asked: A, caller: Caller, now: float, local: datetime) -> Decided:
            return decision(cluster, asked, caller, now)

        _add(ask, without_local_time)
        return decision

    return register


def decides_in_local_time(ask: type[A]) -> Callable[[TimedDecision[A]], TimedDecision[A]]:
    """Register a decision for this kind of request that takes the local time too."""

    def register(decision: TimedDecision[A]) -> TimedDecision[A]:
        _add(ask, decision)
        return decision

    return register


def _add(ask: type[Ask], decision: TimedDecision[Any]) -> None:
    if ask in _DECISIONS:
        raise ValueError(f"{ask.__name__} has a decision already")
    _DECISIONS[ask] = decision


def find_decision(ask: type[Ask]) -> TimedDecision[Any] | None:
    """The decision for a kind of request; its module must be loaded (``lavad.core.decide.load_decisions``)."""
    return _DECISIONS.get(ask)
