"""badmin perfmon: activity of the master by sample periods, under LSF's names and in its layout.

Rule: kept in memory only, and off until an administrator starts it. A count costs an addition; a period is closed by the first
count or query after its end, so that no timer is needed.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.lang import asks
from lavad.core.plan.plan import Plan
from lavad.queries.frame import formats

PERIOD = 60
LONGEST = 86_400
NOT_STARTED = "Performance metric sampling has not been started"
_MBATCHD = (
    "Processed requests: mbatchd",
    "Job information queries",
    "Host information queries",
    "Queue information queries",
    "Job submission requests",
    "Jobs submitted",
    "Jobs dispatched",
    "Jobs completed",
    "Jobs sent to remote cluster",
    "Jobs accepted from remote cluster",
)
_SCHEDULER = ("Scheduling interval in second(s)", "Matching host criteria", "Job buckets", "Jobs reordered")
_QUERIES = {"bjobs": _MBATCHD[1], "bhosts": _MBATCHD[2], "bqueues": _MBATCHD[3]}
_RULE = "-" * 66 + "\n"


class Series:
    """One metric: the sum of the counts of each period, or the newest measurement."""

    def __init__(self, counted: bool = True) -> None:
        self.counted = counted
        self.now = 0
        self.last = 0
        self.most = 0
        self.least = 0
        self.total = 0
        self.periods = 0

    def close(self) -> None:
        """A period is over."""
        self.last = self.now
        self.most = max(self.most, self.now)
        self.least = min(self.least, self.now) if self.periods else self.now
        self.total += self.now
        self.periods += 1
        if self.counted:
            self.now = 0

    def row(self) -> tuple[int, int, int, int, int]:
        """(last, max, min, average, total) of the periods; during the first period, of the counts so far."""
        if not self.periods:
            return (self.now,) * 5
        return self.last, self.most, self.least, round(self.total / self.periods), self.total if self.counted else 0


class Perfmon:
    """The samples of this master."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._began = 0.0
        self._ends = 0.0
        self._period = PERIOD
        self._planned = 0.0
        self._series: dict[str, Series] = {}

    def start(self, period: int) -> str:
        """Start again with a sample period in seconds; 0: the default period. Returns a text for the caller."""
        self._period = period or PERIOD
        self._began = self._clock()
        self._ends = self._began + self._period
        self._series = {name: Series() for name in _MBATCHD} | {name: Series(counted=False) for name in _SCHEDULER}
        return "Performance metric sampling is started"

    def stop(self) -> str:
        """Forget all."""
        if not self._series:
            return NOT_STARTED
        self._series = {}
        return "Performance metric sampling is stopped"

    def set_period(self, period: int) -> str:
        """From now on."""
        if not self._series:
            return NOT_STARTED
        self._roll()
        self._period = period
        self._ends = self._clock() + period
        return f"Performance metric sampling period is {period} seconds"

    def _roll(self) -> None:
        now = self._clock()
        while self._ends <= now:
            for series in self._series.values():
                series.close()
            self._ends += self._period

    def _count(self, name: str, by: int = 1) -> None:
        self._series[name].now += by

    def asked(self, ask: asks.Ask) -> None:
        """A request has come in."""
        if not self._series:
            return
        self._roll()
        self._count(_MBATCHD[0])
        if isinstance(ask, asks.Query) and ask.command in _QUERIES:
            self._count(_QUERIES[ask.command])
        elif isinstance(ask, asks.Submit | asks.Bulk):
            self._count(_MBATCHD[4], len(ask.jobs) if isinstance(ask, asks.Bulk) else 1)

    def committed(self, committed: Committed) -> None:
        """Count a committed batch."""
        if not self._series:
            return
        self._roll()
        for event in committed.events:
            if isinstance(event, ev.JobSubmitted):
                self._count(_MBATCHD[5], 1 if event.indices is None else len(event.indices))
            elif isinstance(event, ev.JobDispatched):
                self._count(_MBATCHD[6])
            elif isinstance(event, (ev.JobFinished, ev.ElementsKilled)):
                self._count(_MBATCHD[7], len(event.elements) if isinstance(event, ev.ElementsKilled) else 1)

    def planned(self, plan: Plan) -> None:
        """Count a scheduling cycle."""
        now = self._clock()
        since, self._planned = now - (self._planned or now), now
        if not self._series:
            return
        self._roll()
        for name, value in zip(_SCHEDULER, (round(since), plan.started, len(self._cluster.pending), 0), strict=True):
            self._series[name].now = value

    def view(self, as_json: bool) -> str:
        """The table, or JSON; ``NOT_STARTED`` where it has not."""
        if not self._series:
            return NOT_STARTED
        self._roll()
        return self._json() if as_json else self._table()

    def _descriptors(self) -> tuple[int, int]:
        used = sum(1 for _ in Path("/proc/self/fd").iterdir())
        return used, resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def _used(self) -> tuple[str, str]:
        """Slots and memory in use by jobs, in percent of the total."""
        hosts, use = self._cluster.hosts.rows.values(), self._cluster.use.hosts.values()
        slots = sum(max(self._cluster.slots_of(host.name), 0) for host in hosts)
        memory = sum(host.facts.max_mem for host in hosts)
        held = sum(one.slots for one in use), sum(one.reserved.get("mem", 0.0) for one in use)
        shares = [100 * part / whole if whole else 0.0 for part, whole in zip(held, (slots, memory), strict=True)]
        return f"{shares[0]:.2f}%", f"{shares[1]:.2f}%"

    def _json(self) -> str:
        records: list[dict[str, object]] = []
        for name, series in self._series.items():
            last, most, least, mean, total = series.row()
            records.append({"name": name, "current": last, "max": most, "min": least, "avg": mean, "total": total})
        for name, value in zip(("Slot utilization", "Memory utilization"), self._used(), strict=True):
            records.append({"name": name, "current": value, "total": "100.00%"})
        used, most = self._descriptors()
        descriptors = {"name": "mbatchd file descriptor usage", "free": most - used, "used": used, "total": most}
        whole = {
            "num": len(records),
            "record": records,
            "period": self._period,
            "start": int(self._began),
            "end": int(self._ends - self._period),
            "fd": descriptors,
        }
        return json.dumps(whole, indent="\t")

    def _table(self) -> str:
        lines = [
            f"Performance monitor start time:  {_time(self._began)}\n",
            f"End time of last sample period:  {_time(self._ends - self._period)}\n",
            f"Sample period :                  {self._period} Seconds\n",
            _RULE,
            f"{'Metrics':<34} {'Last':>6} {'Max':>6} {'Min':>6} {'Avg':>6} {'Total':>6}\n",
            _RULE,
        ]
        lines += [_line(name, self._series[name].row()) for name in _MBATCHD]
        used, most = self._descriptors()
        lines += [_RULE, f"{'File Descriptor Metrics':<34} {'Free':>6} {'Used':>6} {'Total':>6}\n", _RULE]
        lines += [_line("MBD file descriptor usage", (most - used, used, most))]
        lines += [_RULE, f"{'Scheduler Metrics':<34} {'Last':>6} {'Max':>6} {'Min':>6} {'Avg':>6}\n", _RULE]
        lines += [_line(name, self._series[name].row()[:4]) for name in _SCHEDULER]
        return "".join(lines).rstrip("\n")


def _line(name: str, numbers: tuple[int, ...]) -> str:
    return f"{name:<34} " + " ".join(f"{number:>6}" for number in numbers) + "\n"


def _time(at: float) -> str:
    return formats.full_time(at)
