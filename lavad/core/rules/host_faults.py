"""Signs that a host is faulty: starts that failed there, jobs that ended badly, and what its own health check says.

Rule: a user must not be able to close hosts. So a start that failed counts against the host only once the same job has started on
another one, or where the host says that the fault is its own (``HOSTS_OWN``). The exit rate is LSF's (EXIT_RATE of lsb.hosts).
"""

from __future__ import annotations

from bisect import bisect_right

import msgspec
from msgspec.structs import replace

from lavad.core.job.job import Job
from lavad.core.lang.states import TermReason

HOSTS_OWN = frozenset({"lookup", "spool"})
"""Codes of refusals that no job has anything to do with."""
NOT_COUNTED = frozenset({"pre_abort", "not_allowed", "gone"})
"""What the job or the site wanted."""
_KEPT = 200


class Faults(msgspec.Struct, frozen=True):
    """Of one host, since a job last started there."""

    refused: tuple[int, ...] = ()
    """Keys of the jobs that it refused, each once."""
    proven: frozenset[int] = frozenset()
    """Those of them for which the fault is the host's."""
    why: str = ""
    """Its reason for the newest of them."""
    exits: tuple[float, ...] = ()
    """When jobs on it ended badly, oldest first."""
    on_trial: bool = False
    """It was opened to see whether a job starts again: the next failure closes it."""


def refused(faults: Faults, key: int, code: str, why: str) -> Faults:
    """The host has refused a job."""
    if code in NOT_COUNTED:
        return faults
    keys = (*(known for known in faults.refused if known != key), key)[-_KEPT:]
    proven = faults.proven | {key} if code in HOSTS_OWN else faults.proven
    return replace(faults, refused=keys, proven=proven & frozenset(keys), why=why)


def started_elsewhere(faults: Faults, key: int) -> Faults:
    """A job that another host may have refused runs now."""
    return replace(faults, proven=faults.proven | {key}) if key in faults.refused else faults


def started(faults: Faults) -> Faults:
    """A job has started on the host."""
    return Faults(exits=faults.exits)


def loses_jobs(faults: Faults, most: int) -> bool:
    """Whether ``most`` jobs in a row could not start for a fault of the host; 0: it is never said."""
    return 0 < most <= len(faults.proven) or (bool(most) and faults.on_trial and bool(faults.proven))


def ended_badly(job: Job, types: frozenset[str]) -> bool:
    """Whether the end of a job counts in the exit rate of its hosts. ``types``: EXIT_RATE_TYPE."""
    outcome, run = job.outcome, job.run
    if outcome is None or run is None or run.verdict is None or not outcome.status:
        return False
    return "JOBEXIT" in types or ("JOBEXIT_NONLSF" in types and outcome.reason is TermReason.NONE)


def exited(faults: Faults, at: float, span: float) -> Faults:
    """A job on the host has ended badly; those of ``span`` seconds are remembered."""
    exits = faults.exits[bisect_right(faults.exits, at - span) :]
    return replace(faults, exits=(*exits, at))


def exceeds(faults: Faults, rate: float | None, now: float, span: float) -> bool:
    """Whether more jobs than ``rate`` ended badly within ``span`` seconds."""
    return rate is not None and len(faults.exits) - bisect_right(faults.exits, now - span) > rate
