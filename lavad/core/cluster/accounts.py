"""Resources in use by started jobs, by account (queue, user, group): the live half of fair share.

Rule: all sums are integers (microseconds, KB), so that they do not depend on the order of events and a replica that started
from a snapshot has exactly the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add, sub

from lavad.core.cluster.charge import Account, account_of
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Attempt
from lavad.core.job.spec import Spec

Sums = tuple[int, int, int, int, int, int, int, int, int]
JOBS, SLOTS, RUNNING, STARTS, GPUS, RUNNING_GPUS, GPU_STARTS, COMMITTED, MEM = range(9)
"""Jobs; slots; slots of running jobs and the sum of (slots x start, in us); the same of GPUs; slots x run limit in s; KB.

The run limit as requested, which LSF calls committed run time, not what it is on the job's hosts.
"""
_MICRO = 1_000_000


def held(run: Attempt, spec: Spec) -> Sums:
    """What an attempt adds to its account."""
    slots = running = gpus = mem = 0
    for part in run.parts:
        slots += part.slots
        running += slots_in(part)
        gpus += len(part.gpus)
        for name, amount in part.reserved:
            if name == "mem":
                mem += round(amount * 1024)
    if not run.started:
        return 1, slots, 0, 0, gpus, 0, 0, 0, mem
    start = round(run.started * _MICRO)
    late, late_gpus = round(run.spent[0] * _MICRO), round(run.spent[1] * _MICRO)
    return 1, slots, running, running * start - late, gpus, gpus, gpus * start - late_gpus, running * (spec.limits.run or 0), mem


class Accounts:
    """Account to its sums; accounts without started jobs have no entry."""

    def __init__(self) -> None:
        self.rows: dict[Account, list[int]] = {}

    def add(self, run: Attempt, spec: Spec, sign: int) -> None:
        """Add an attempt (``sign`` 1), or take it away (-1)."""
        account = account_of(spec)
        row = self.rows.get(account)
        if row is None:
            row = self.rows[account] = [0] * 9
        row[:] = map(add if sign > 0 else sub, row, held(run, spec))
        if not row[JOBS]:
            del self.rows[account]

    def add_all(self, runs: Iterable[Attempt], spec: Spec, sign: int) -> None:
        """As ``add``, of attempts of one class with one part each, which are the same where they have as many slots.

        Those that have not started are counted together.
        """
        waiting: dict[int, list[Attempt]] = {}
        for run in runs:
            if run.started:
                self.add(run, spec, sign)
            else:
                waiting.setdefault(run.parts[0].slots, []).append(run)
        for alike in waiting.values():
            row = self.rows.setdefault(account_of(spec), [0] * 9)
            count = sign * len(alike)
            row[:] = [own + count * more for own, more in zip(row, held(alike[0], spec), strict=True)]
            if not row[JOBS]:
                del self.rows[account_of(spec)]


def same(old: Attempt, new: Attempt) -> bool:
    """Whether two records of an attempt use the same resources: almost always so when only the state of a part changes."""
    if old.number != new.number or old.started != new.started or len(old.parts) != len(new.parts) or old.spent != new.spent:
        return False
    return all(
        a.slots == b.slots and a.gpus == b.gpus and a.reserved == b.reserved for a, b in zip(old.parts, new.parts, strict=True)
    )


def run_seconds(row: list[int], now: float) -> float:
    """Slot seconds that running jobs have run so far."""
    return max(0, row[RUNNING] * round(now * _MICRO) - row[STARTS]) / _MICRO


def gpu_seconds(row: list[int], now: float) -> float:
    """GPU seconds of running jobs so far."""
    return max(0, row[RUNNING_GPUS] * round(now * _MICRO) - row[GPU_STARTS]) / _MICRO
