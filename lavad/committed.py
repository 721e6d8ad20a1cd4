"""What the engine tells of a batch: before its commit those who work ahead, after it those who listen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.job.job import Array, Job


class Committed(msgspec.Struct):
    """A committed batch, for replicas, waiting callers and the outbox."""

    version: int
    events: Sequence[Event]
    changed: Sequence[Job]
    finished: Sequence[Job]
    arrays: Sequence[Array] = ()
    """The last records of arrays whose last element finished in this batch."""
    took: float = 0.0
    """Seconds that the store took for it."""
    kinds: frozenset[type[Event]] = frozenset()
    """Of its events, so that who asks for others need not look at each."""

    def __post_init__(self) -> None:
        self.kinds = frozenset(map(type, self.events))


class Listener(Protocol):
    """Called with each committed batch, in order; must not block."""

    def __call__(self, committed: Committed, /) -> None: ...


class Ahead(Protocol):
    """Hears of a batch before it is committed, for what nobody sees before the commit."""

    def wants_plan(self, cluster: Cluster, /) -> bool:
        """Whether a batch with the changes of this cluster is to wait for a plan of what can be started now."""

    async def planned(self, events: Sequence[Event], version: int, /) -> int:
        """Returns once a plan that knows these first events of a batch, up to this version, is handed in, or as none comes soon.

        How many of the events it was told of: all or, where one cannot be encoded, none.
        """

    def begun(self, events: Sequence[Event], /) -> None:
        """The batch is to be committed; these are its events that it was not told of.

        Raises UnicodeEncodeError, OverflowError: one of them cannot be encoded.
        """

    def under_way(self) -> None:
        """The store has the batch that began last: what is told now does not hold up the commit."""

    def undone(self) -> None:
        """The batch of which it has heard was not committed."""
