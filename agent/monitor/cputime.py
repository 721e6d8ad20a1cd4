"""CPU time of one part, by rank, that never goes back and counts what has ended.

Rule: pure; integers of clock ticks. A living process counts what it used and what it reaped. Of a process that vanished
counts what it was last seen with, less what a living ancestor has since reaped: so nothing is lost when nobody waits
for a child (SIGCHLD ignored), and nothing counts twice when somebody does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from agent.monitor.procscan import Proc
from agent.monitor.tree import REST


class _Seen(NamedTuple):
    start: int
    ppid: int
    rank: int
    own: int
    reaped: int


class CpuTime:
    """The sums of one part."""

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._retired: defaultdict[int, int] = defaultdict(int)
        self._owed: dict[int, int] = {}
        self._loose: dict[int, int] = {}
        """What of it may have come to the shepherd, which was read before it reaped: its growth at the next look pays that."""
        self._shown: defaultdict[int, int] = defaultdict(int)
        self._baseline: tuple[int, int] | None = None

    def update(self, members: Mapping[int, int], procs: Mapping[int, Proc], shepherd: int) -> dict[int, int]:
        """Ticks used so far by rank (REST: of no rank), from the members (pid -> rank) of one look."""
        now = {pid: _seen(procs[pid], rank) for pid, rank in members.items()}
        if (proc := procs.get(shepherd)) is not None:
            now[shepherd] = self._of_shepherd(proc)
        self._settle(now, shepherd)
        totals: defaultdict[int, int] = defaultdict(int, self._retired)
        for pid, seen in now.items():
            totals[seen.rank] += seen.own + seen.reaped
            before = self._seen.get(pid)
            if before is not None and before.rank != seen.rank and before.start == seen.start:
                self._shown[before.rank] -= before.own + before.reaped
        for rank, ticks in totals.items():
            self._shown[rank] = max(self._shown[rank], ticks)
        self._seen = now
        return dict(self._shown)

    def _of_shepherd(self, proc: Proc) -> _Seen:
        """Its own time is not the job's; it served others before, so what it reaped counts from the first look."""
        if self._baseline is None or self._baseline[0] != proc.start:
            self._baseline = (proc.start, proc.reaped)
        return _Seen(proc.start, proc.ppid, REST, 0, proc.reaped - self._baseline[1])

    def _settle(self, now: Mapping[int, _Seen], shepherd: int) -> None:
        """Keep the time of what vanished, once."""
        gone: dict[int, dict[int, int]] = {}
        owed: defaultdict[int, int] = defaultdict(int)
        loose: defaultdict[int, int] = defaultdict(int)
        former: defaultdict[int, int] = defaultdict(int)
        moved: defaultdict[int, int] = defaultdict(int)
        """Of what is owed, what came with one that is gone now: its ancestor may have been read just before it got that."""
        for pid, seen in self._seen.items():
            above = pid if _lives(pid, seen, now) else self._find_ancestor(seen, now)
            owed[above] += self._owed.get(pid, 0)
            former[above] += self._loose.get(pid, 0)
            if above == pid:
                continue
            moved[above] += self._owed.get(pid, 0)
            of_rank = gone.setdefault(above, {})
            of_rank[seen.rank] = of_rank.get(seen.rank, 0) + seen.own + seen.reaped
            if above not in (seen.ppid, shepherd):
                loose[above] += seen.own + seen.reaped
        self._owed = {}
        serves = shepherd in now and shepherd in self._seen
        left = now[shepherd].reaped - self._seen[shepherd].reaped if serves else 0
        # what the shepherd need not have for its own pays first: what came to it pays for nobody else
        spare = max(0, left - owed[shepherd] - sum(gone.get(shepherd, {}).values()))
        left -= spare - self._pay_loose(former, owed, spare, REST)
        unpaid: dict[int, int] = {}
        for above in (gone.keys() | owed.keys()) - {shepherd}:
            growth = now[above].reaped - self._seen[above].reaped if above else 0
            growth, unpaid[above] = self._pay(above, owed[above], growth, now)
            self._owe(above, min(unpaid[above], moved[above]))
            growth = self._cover(above, gone.get(above, {}), growth, now)
            if above:
                self._attribute(gone.get(above, {}), growth, now[above].rank)
        if serves:
            its = gone.get(shepherd, {})
            left, late = self._pay(shepherd, owed[shepherd], left, now)
            self._owe(shepherd, min(late, moved[shepherd]))
            left = self._pay_loose(former, unpaid, left, REST)
            left = self._cover(shepherd, its, left, now)
            left = self._pay_loose(loose, self._owed, left, REST)
            self._attribute(its, left, REST)
        self._loose = {above: min(ticks, self._owed.get(above, 0)) for above, ticks in loose.items()}

    def _pay_loose(self, loose: dict[int, int], owed: dict[int, int], left: int, holder: int) -> int:
        """What lost its parent as well may have come to the shepherd, who reaped it; what is left of its growth."""
        for above, ticks in loose.items():
            paid = min(left, ticks, owed.get(above, 0))
            if paid:
                left -= paid
                loose[above] -= paid
                owed[above] -= paid
                self._retired[holder] -= paid
        return left

    def _pay(self, above: int, owed: int, left: int, now: Mapping[int, _Seen]) -> tuple[int, int]:
        """What is ``left`` of the growth of ``above`` (0: none lives) once it has paid ``owed``, and what it did not pay.

        ``owed``: retired at the last look and not covered then. The ancestor may have been read just before it reaped, so growth
        pays that first; older debts are of children that nobody waited for and are forgotten.
        """
        if above == 0:
            return 0, owed
        paid = min(left, owed)
        self._retired[now[above].rank] -= paid
        return left - paid, owed - paid

    def _cover(self, above: int, gone: Mapping[int, int], left: int, now: Mapping[int, _Seen]) -> int:
        """Retire what ``gone`` was last seen with, less what is ``left`` of the growth of ``above``; what is left then.

        What it does not cover, ``above`` owes.
        """
        for rank, ticks in gone.items():
            covered = min(left, ticks)
            left -= covered
            self._retired[rank] += ticks
            if above:
                self._retired[now[above].rank] -= covered
                self._owe(above, ticks - covered)
        return left

    def _owe(self, above: int, ticks: int) -> None:
        if above and ticks:
            self._owed[above] = self._owed.get(above, 0) + ticks

    def _attribute(self, gone: Mapping[int, int], left: int, holder: int) -> None:
        """What is left of a growth is what those of one rank used after they were last seen, and children never seen."""
        if len(gone) == 1 and holder == REST:
            (rank,) = gone
            self._retired[rank] += left
            self._retired[holder] -= left

    def _find_ancestor(self, seen: _Seen, now: Mapping[int, _Seen]) -> int:
        """The nearest process above it that still lives; 0: none."""
        for _ in range(len(self._seen)):
            above = self._seen.get(seen.ppid)
            if above is None:
                return 0
            if _lives(seen.ppid, above, now):
                return seen.ppid
            seen = above
        return 0


def _seen(proc: Proc, rank: int) -> _Seen:
    return _Seen(proc.start, proc.ppid, rank, proc.own, proc.reaped)


def _lives(pid: int, seen: _Seen, now: Mapping[int, _Seen]) -> bool:
    found = now.get(pid)
    return found is not None and found.start == seen.start


class CpuPeak:
    """The most CPUs that were in use at a time, over ``SPAN`` at least: less would show the noise of single samples."""

    SPAN = 10.0

    def __init__(self, now: float) -> None:
        self.cpus = 0.0
        self.after = 0.0
        """Seconds from the first sample to when that was."""
        self._first = now
        self._since = now
        self._before = 0.0

    def see(self, now: float, cpu: float) -> None:
        """``cpu``: seconds used so far."""
        if now - self._since < self.SPAN:
            return
        rate = max(cpu - self._before, 0.0) / (now - self._since)
        self._since, self._before = now, cpu
        if rate > self.cpus:
            self.cpus, self.after = rate, now - self._first
