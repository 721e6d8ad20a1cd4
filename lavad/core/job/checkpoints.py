"""What is known of a job's checkpoints: its newest generations, what they cost, and what its restarts have lost.

Times in seconds, sizes in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

KEPT = 8
"""Generations that are remembered; those before are in the events."""
PERIOD = "checkpoint_period"
"""The name among what the first host of a running job is told anew (``Attempt.amended``)."""


class Generation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A checkpoint that is whole: every file agrees with its manifest."""

    number: int
    at: float
    attempt: int = 0
    seconds: float = 0.0
    """From the request until it was whole; 0.0: nobody asked for it."""
    size: int = 0
    method: str = ""
    staged: int = 0
    """Bytes of its copy, at least 1; 0: there is none."""
    hosts: tuple[str, ...] = ()
    """Those that hold a copy, the first one first; (): it is in the shared folder."""


class Checkpoints(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a job that has made checkpoints, or could not."""

    generations: tuple[Generation, ...] = ()
    """Oldest first."""
    count: int = 0
    cost: float = 0.0
    """Seconds that its checkpoints took, those that failed too."""
    failed: int = 0
    why: str = ""
    """Why the last one failed."""
    failed_at: float = 0.0
    lost: float = 0.0
    """Seconds of work that its restarts have done again, or have to."""
    restarts: int = 0
    period: int = 0
    """-k auto: seconds between checkpoints as they are now; 0: not set yet."""
    next_cost: float = 0.0
    """Seconds that a checkpoint was taken to cost, and ``between_failures`` of its hosts, when that was set."""
    between_failures: float = 0.0
    deaths: int = 0
    """Crashes in a row of attempts that began from one generation and made none."""
    went_back: int = -1
    """The generation from which it died too often, so that it goes on from the one before; -1: none."""
    not_staged: str = ""
    """Why the newest generation could not be copied, the last time."""
    holder: str = ""
    """The host to which copies go now (``-k "DIR stage"`` without a shared folder), and the port of its that the job knows."""
    holder_port: int = 0
    go_back: bool = False
    """The next attempt starts from ``Job.checkpoint``, though there are newer generations."""

    def newest(self, attempt: int) -> Generation | None:
        """The newest that an attempt has made."""
        return next((one for one in reversed(self.generations) if one.attempt == attempt), None)


class CheckpointSums(msgspec.Struct, frozen=True, gc=False):
    """Of several jobs: checkpoints made, seconds that they took, restarts, and seconds of work that these lost."""

    made: int = 0
    cost: float = 0.0
    restarts: int = 0
    lost: float = 0.0

    def plus(self, other: CheckpointSums) -> CheckpointSums:
        """Both together."""
        return CheckpointSums(
            self.made + other.made, self.cost + other.cost, self.restarts + other.restarts, self.lost + other.lost
        )


def total(sums: Iterable[CheckpointSums]) -> CheckpointSums:
    """All of them together."""
    found = CheckpointSums()
    for one in sums:
        found = found.plus(one)
    return found


def sums_of(known: Checkpoints | None) -> CheckpointSums:
    """Those of one job."""
    return CheckpointSums() if known is None else CheckpointSums(known.count, known.cost, known.restarts, known.lost)


def made(old: Checkpoints | None, generation: Generation) -> Checkpoints:
    """One more is whole."""
    old = old or Checkpoints()
    before = tuple(one for one in old.generations if one.number < generation.number)
    return replace(
        old,
        generations=(*before, generation)[-KEPT:],
        count=old.count + 1,
        cost=old.cost + generation.seconds,
        deaths=0,
        went_back=-1,
        go_back=False,
    )


def staged(old: Checkpoints | None, number: int, size: int, why: str, host: str = "") -> Checkpoints:
    """A generation is whole in the shared folder or on ``host``, or ``why`` it is not."""
    old = old or Checkpoints()
    found = tuple(_copied(one, size, host) if one.number == number and not why else one for one in old.generations)
    return replace(old, generations=found, not_staged=why)


def to_copy(known: Checkpoints, attempt: int, copying: int, failed: bool = False) -> int:
    """The generation that all hosts of an attempt are to copy: the newest, once the one that they copy is there or has failed."""
    newest = known.newest(attempt)
    over = copying < 0 or failed or any(one.number == copying and one.staged for one in known.generations)
    return newest.number if newest is not None and over else copying


def brought(known: Checkpoints, newest: int) -> int:
    """The generation that a job on several hosts goes on from, at most ``newest``: of those remembered one that was copied."""
    copied = {one.number: bool(one.staged) for one in known.generations}
    return newest if copied.get(newest, True) else max((one for one in copied if copied[one] and one < newest), default=-1)


def _copied(one: Generation, size: int, host: str) -> Generation:
    hosts = one.hosts if not host or host in one.hosts else (*one.hosts, host)
    return replace(one, staged=max(1, size), hosts=hosts)


def holds(known: Checkpoints | None) -> dict[str, list[int]]:
    """The generations that each host holds, the newest first; hosts in the order of their newest."""
    found: dict[str, list[int]] = {}
    for one in reversed(known.generations if known is not None else ()):
        for host in one.hosts:
            found.setdefault(host, []).append(one.number)
    return found


def failed(old: Checkpoints | None, why: str, at: float, seconds: float) -> Checkpoints:
    """One could not be made."""
    old = old or Checkpoints()
    return replace(old, failed=old.failed + 1, why=why, failed_at=at, cost=old.cost + seconds)


def started_again(old: Checkpoints | None, attempt: int, since: float, at: float) -> Checkpoints:
    """The attempt ran from ``since`` to ``at``, and the job starts again: what it did after its newest generation is lost."""
    old = old or Checkpoints()
    newest = old.newest(attempt)
    begin = max(since, newest.at if newest is not None else 0.0)
    return replace(old, lost=old.lost + max(0.0, at - begin), restarts=old.restarts + 1)


def died(old: Checkpoints, deaths: int, left: int | None) -> Checkpoints:
    """An attempt crashed, for the ``deaths``-th time in a row (0: it did not); ``left``: a generation that is given up."""
    if left is not None:
        return replace(old, deaths=0, went_back=left, go_back=True)
    return replace(old, deaths=deaths or old.deaths)
