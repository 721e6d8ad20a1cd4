"""Conservative backfill (Mu'alem & Feitelson 2001) on one pool of equal slots, for simulations.

Rule: the jobs that start are those that start where at each instant all jobs are planned again, each in queue order at the
earliest time that delays none before it. What is left out of a plan is what no start can depend on.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from lavad.replay.backfill import Waiting, in_order
from lavad.replay.profile import Held, Profile
from lavad.sched.needs.arrays import Floats, Ints, Mask, np

CHUNK = 64
"""Jobs that a plan looks at together at first; twice as many each time."""
LONGER = 0.5
"""Seconds by which a duration is beyond what there is room for, whatever sums of times are rounded to."""
NONE = 1 << 62
"""More slots than there are: the least amount of no job."""


class Conservative:
    """Promises to the jobs that wait, and who starts.

    A plan holds while all starts and ends as was expected: what runs is where it was promised to be, what has started meanwhile
    takes nothing from those before it, and free slots only become fewer, so that to plan all again would promise the same. After
    an early end, or while a job is overdue, another is made. How far plans go follows from how long they hold.
    """

    def __init__(self) -> None:
        self._line = Line()
        self.plan: Plan | None = None
        """What holds now."""
        self._reach = math.inf

    def add(self, job: Waiting) -> None:
        """A job comes, behind all others."""
        self._line.add(job)
        if self.plan is not None:
            self.plan.come(job.amount)

    def changed(self, now: float) -> None:
        """Something that runs has ended early, or goes on beyond its expected end."""
        if self.plan is not None:
            self._reach = 2 * (now - self.plan.made)
            self.plan = None

    @property
    def promises(self) -> dict[int, float]:
        """The promised starts of those that wait, as far as the plan goes."""
        return self.plan.promises if self.plan is not None else {}

    def starts(self, now: float, free: int, running: Sequence[Held]) -> list[int]:
        """The keys of the jobs that start now, in queue order. ``running``: slots in use, sorted by expected end."""
        plan = self.plan
        if plan is not None and now >= plan.until:
            self._reach = 2 * (plan.until - plan.made)
        if plan is None or now >= plan.until or not plan.holds:
            self.plan = None
            least = self._line.least(0)
            if free < least:
                return []
            plan = self.plan = Plan(self._line, least, running, now, free, self._reach)
        return plan.starts(now, free)


class Line:
    """The waiting jobs in queue order, as columns up to ``end``. Those that have left stay in them until they are many."""

    def __init__(self) -> None:
        self.end = 0
        self.keys: Ints = np.zeros(CHUNK, dtype=np.int64)
        self.amounts: Ints = np.zeros(CHUNK, dtype=np.int64)
        self.durations: Floats = np.zeros(CHUNK, dtype=np.float64)
        self.waits: Mask = np.zeros(CHUNK, dtype=np.bool_)
        self._left = 0

    def add(self, job: Waiting) -> None:
        """A job comes, behind all others."""
        if self.end == len(self.keys):
            self._resize(np.arange(2 * self.end) % self.end)
        at = self.end
        self.keys[at], self.amounts[at], self.durations[at], self.waits[at] = job.key, job.amount, job.duration, True
        self.end += 1

    def leave(self, at: int) -> None:
        """A job has started."""
        self.waits[at] = False
        self._left += 1

    def least(self, first: int) -> int:
        """No job from this place on has a smaller amount."""
        return int(np.min(self.amounts[first : self.end])) if first < self.end else NONE

    def renew(self) -> None:
        """Places may be others from now on."""
        if self._left > CHUNK + self.end // 4:
            stay = np.flatnonzero(self.waits[: self.end])
            self._resize(np.pad(stay, (0, len(stay) + CHUNK)))
            self.end, self._left = len(stay), 0

    def _resize(self, places: Ints) -> None:
        self.keys, self.amounts, self.durations = self.keys[places], self.amounts[places], self.durations[places]
        self.waits = self.waits[places]


class Plan:
    """Promises as of one instant, to those of the line that start before ``until``.

    At ``until`` less is free than any job that waits would need, so that what starts later tells nothing about what starts
    before. The first such instant behind ``reach`` seconds ends a plan. Jobs are looked at only once there are free slots that
    one of those not looked at could use.
    """

    def __init__(self, line: Line, least: int, running: Sequence[Held], now: float, free: int, reach: float) -> None:
        line.renew()
        self.made = now
        self.until = math.inf
        self.holds = True
        """Whether the promises hold; not where a job of no duration, which reserves nothing, has to wait."""
        self._line = line
        self._profile = Profile(now, free, in_order(running, now))
        self._reach = now + reach
        self._free_then = -1
        """What is free at ``until``."""
        self._at = 0
        """The first job that was not looked at."""
        self._least = least
        """No job that was not looked at has a smaller amount."""
        self._chunk = CHUNK
        self._promised: list[tuple[float, int]] = []
        self._found: dict[int, tuple[float, float]] = {}
        self._short = Short()

    def come(self, amount: int) -> None:
        """A job of this amount stands at the end of the line from now on."""
        self._least = min(self._least, amount)
        self.holds = self.holds and amount > self._free_then

    @property
    def promises(self) -> dict[int, float]:
        """Key to promised start."""
        return {int(self._line.keys[at]): time for time, at in self._promised}

    def starts(self, now: float, free: int) -> list[int]:
        """The keys of the jobs that start now, in queue order."""
        self._profile.forget(now)
        begun: list[int] = []
        while self._promised and self._promised[0][0] <= now:
            at = heapq.heappop(self._promised)[1]
            free = self._start(at, int(self._line.amounts[at]), free, begun)
        while self._at < self._line.end and free >= self._least:
            free = self._look(now, free, begun)
        return [int(self._line.keys[at]) for at in begun]

    def _look(self, now: float, free: int, begun: list[int]) -> int:
        """Promise starts to the next jobs of the line, until too few slots are free for any; what is free then."""
        last = min(self._line.end, self._at + self._chunk)
        self._chunk *= 2
        for at, amount, duration in self._may_fit(self._at, last, now):
            self._at = at + 1
            if now + duration > self.until or self._short.has(amount, duration):
                continue
            time = self._reserve(amount, duration, now)
            if time == now:
                free = self._start(at, amount, free, begun)
                if free < self._least:
                    self._chunk = CHUNK
                    return free
            elif time is not None:
                self.holds = self.holds and duration > 0
                heapq.heappush(self._promised, (time, at))
        self._at = last
        self._least = self._line.least(last)
        return free

    def _may_fit(self, first: int, last: int, now: float) -> Iterator[tuple[int, int, float]]:
        """(place, amount, duration) of the jobs there of which it is not known yet that they find no start."""
        line = self._line
        fits = line.waits[first:last]
        if self.until < math.inf:
            fits = fits & (now + line.durations[first:last] <= self.until)
        places = first + np.flatnonzero(fits)
        if self._short.known:
            places = places[~self._short.among(line.amounts[places], line.durations[places])]
        return zip(places.tolist(), line.amounts[places].tolist(), line.durations[places].tolist(), strict=True)

    def _start(self, at: int, amount: int, free: int, begun: list[int]) -> int:
        """What is free then. A job of no duration reserves nothing, yet two of them cannot use the same slots at one instant."""
        if amount > free:
            self.holds = False
            return free
        begun.append(at)
        self._line.leave(at)
        return free - amount

    def _reserve(self, amount: int, duration: float, now: float) -> float | None:
        """Promise a job the earliest start; None: there is none before ``until``."""
        # free slots only shrink: a job finds no earlier start than one before it that was as large and no longer
        shorter, after = self._found.get(amount, (math.inf, now))
        time = self._profile.reserve_earliest(amount, duration, max(now, after) if duration >= shorter else now)
        if time is None:
            self._short.add(amount, min(duration, self._profile.longest(amount) + LONGER))
            return None
        if duration <= shorter or time > after:
            self._found[amount] = (duration, time)
        if time + duration > self._reach:
            self._end(max(time, self._reach), time + duration)
        return time

    def _end(self, first: float, last: float) -> None:
        """The plan ends between these times, if too few slots are free there for any job that was not looked at."""
        found = self._profile.first_below(self._least, first, min(last, self.until))
        if found is not None:
            self.until, self._free_then = found
            self._profile.end(self.until)


class Short:
    """What there was no room for: amounts, and the shortest durations of which it is known. There is none for what is as much."""

    def __init__(self) -> None:
        self._amounts = [0]
        self._durations = [math.nan]
        """Falling; of the smallest amounts nothing is known, and no number is as large as nan."""

    @property
    def known(self) -> bool:
        """Whether anything is known."""
        return len(self._amounts) > 1

    def has(self, amount: int, duration: float) -> bool:
        """Whether there is no room for this."""
        return duration >= self._durations[bisect_right(self._amounts, amount) - 1]

    def among(self, amounts: Ints, durations: Floats) -> Mask:
        """The same of many."""
        at = np.searchsorted(np.asarray(self._amounts), amounts, side="right") - 1
        return np.asarray(durations >= np.asarray(self._durations)[at])

    def add(self, amount: int, duration: float) -> None:
        """There is no room for this, which was not known."""
        at = bisect_right(self._amounts, amount)
        first = at - 1 if self._amounts[at - 1] == amount else at
        while at < len(self._durations) and self._durations[at] >= duration:
            at += 1
        self._amounts[first:at], self._durations[first:at] = [amount], [duration]
