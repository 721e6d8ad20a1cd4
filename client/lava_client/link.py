"""What a client asks of a cluster, whichever way it goes there: over the local socket, or over REST from afar.

Rule: an ask that changes something is done once, however often it is sent. A master that is away is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lava_client.errors import LavaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Link(Protocol):
        """A way to a cluster; usable from several threads, one at a time.

        Every method may raise Refused, Unavailable, and Closed after ``close`` by another thread.
        """

        def submit(self, frame: Mapping[str, Any]) -> dict[str, Any]:
            """Submit what ``options.submission`` made; ``job`` and ``queue`` of the new job."""

        def submit_many(self, frame: Mapping[str, Any], commands: Sequence[str]) -> list[dict[str, Any]]:
            """For each command ``job`` and ``queue``, or ``why`` it was refused and after how many seconds to ``retry``."""

        def kill(self, ids: Sequence[str]) -> list[str]:
            """Kill jobs; the ids of those that had not ended."""

        def rows(self, ids: Sequence[str], fields: str) -> list[dict[str, str]]:
            """What ``bjobs -o FIELDS`` shows of jobs, by field in capitals; those that it does not know are left out."""

        def slots(self) -> int:
            """The slots of all hosts."""

        def why(self, job: str) -> str:
            """As ``lava why`` says it."""

        def start(self, job: str) -> float | None:
            """When a waiting job or element will have started, in seconds since the epoch; None: it is not known."""

        def peek(self, job: str) -> str:
            """The output of a job so far, or what its host keeps of it, as ``bpeek`` shows it."""

        def end(self, job: int) -> dict[str, Any]:
            """How a job, or an array as a whole, has ended: its change."""

        def changes(self, after: str, wait: float) -> dict[str, Any]:
            """``changes`` of the caller's jobs after a cursor ("": from now on), the next cursor (``after``), and whether some
            were ``lost``. ``wait``: seconds that it may take until there is one."""

        def idle(self) -> None:
            """Nobody waits for changes now."""

        def close(self) -> None:
            """Close the connection; an ask under way raises Closed."""

        def forget(self) -> None:
            """In the child of a fork: the connection is the parent's."""


LARGEST_ASK = 16 << 20
LARGEST_ANSWER = 64 << 20
"""Bytes."""


CLOSED = "the connection to lava is closed"


class Closed(LavaError):
    """The link was closed while it was in use."""
