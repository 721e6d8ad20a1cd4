"""The result of a decision: events to commit, and the answer to the caller after the commit."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.core.job.spec import JobText
from lavad.core.plan.cycle_record import RecordedCycle
from proto.answers import Answer


class Decided(msgspec.Struct):
    """Events in order, the answer (plain data for the wire), and texts of new or changed jobs for the store."""

    events: list[Event] = []
    answer: Answer = {}
    texts: list[tuple[int, JobText]] = []
    envs: list[tuple[str, bytes]] = []
    """Environments of new jobs, each once however many have it: hash and msgpack."""
    attached: list[tuple[int, int, str]] = []
    """Data attached to messages: key of the job, number of the message, data. It stays in the store."""
    cycles: list[RecordedCycle] = []
    """Accepted plans with the inputs that they were made from."""
    more: Callable[[Cluster, float], Decided] | None = None
    """The next chunk of a request about many jobs, for a later turn. The last chunk has the answer."""
