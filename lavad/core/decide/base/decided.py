"""What a decision yields: events to commit, and the answer that the caller gets once they are."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.job.spec import JobText
from lavad.core.lang.answers import Answer
from lavad.core.plan.cycle_record import RecordedCycle


class Decided(msgspec.Struct):
    """Events in order, the answer (plain data for the wire), and texts of new or changed jobs for the store."""

    events: list[Event] = []
    answer: Answer = {}
    texts: list[tuple[int, JobText]] = []
    cycles: list[RecordedCycle] = []
    """Plans that were accepted, with what they were decided on."""
    more: Callable[[Cluster, float], Decided] | None = None
    """What is left of an ask about many jobs: for a later turn, after others have had theirs. The last one has the answer."""
