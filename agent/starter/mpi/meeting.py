"""Where the ranks of a Horovod job meet: the values are on the first host; the others' requests go to it over the job's network.

Rule: between hosts a request travels in frames of the shepherds' mutual TLS alone. A request that is under way when the
connection breaks is answered 503, and asked again by its rank or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.starter.mpi.rendezvous import Answered, Values
from agent.starter.wire import taskwire as wire

if TYPE_CHECKING:  # ``ssl`` is loaded only where a job spans hosts
    from agent.starter.wire.job_network import Event, JobNetwork

BROKEN = 503


class FirstHost:
    """Has the values, for the ranks of this host and of the others."""

    def __init__(self, network: JobNetwork | None) -> None:
        self._values = Values()
        self._network = network
        if network is not None:
            network.on_meeting(self._on_event)

    def ask(self, verb: bytes, path: bytes, body: bytes, answered: Answered) -> None:
        """Carry out a request of a rank of this host."""
        answered(*self._values.request(verb, path, body))

    def _on_event(self, event: Event) -> None:
        if self._network is None or not isinstance(event, wire.Frame):
            return
        head, _, body = event.body.partition(b"\0")
        verb, _, path = head.partition(b" ")
        status, found = self._values.request(verb, path, body)
        self._network.send(wire.Frame(wire.MEETING, event.origin, 0, event.number, status.to_bytes(2, "big") + found))


class OtherHost:
    """Passes the requests of this host's ranks on to the first host."""

    def __init__(self, network: JobNetwork) -> None:
        self._network = network
        self._last = 0
        self._open: dict[int, Answered] = {}
        network.on_meeting(self._on_event)

    def ask(self, verb: bytes, path: bytes, body: bytes, answered: Answered) -> None:
        """Carry out a request of a rank of this host."""
        self._last = (self._last + 1) % 2**32
        frame = wire.Frame(wire.MEETING, 0, self._network.host_index, self._last, b"%b %b\0%b" % (verb, path, body))
        if self._network.send(frame):
            self._open[self._last] = answered
        else:
            answered(BROKEN, b"")

    def _on_event(self, event: Event) -> None:
        from agent.starter.wire.job_network import Lost

        if isinstance(event, wire.Frame):
            answered = self._open.pop(event.number, None)
            if answered is not None:
                answered(int.from_bytes(event.body[:2], "big"), event.body[2:])
        elif isinstance(event, Lost):
            waiting, self._open = self._open, {}
            for answered in waiting.values():
                answered(BROKEN, b"")
