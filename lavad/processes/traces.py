"""The process that sends the life of each job that has ended to a collector of OpenTelemetry (LAVA_TRACES).

Rule: it reads the store and what lavad hands on of the reasons why jobs wait, and asks nothing of lavad: a collector that is slow
or away holds up this process alone. It begins with the events of this master; what it sends twice, after it was started again,
has the same ids.
"""

from __future__ import annotations

import os
import sys
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Protocol

from lavad.core import events as ev
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.plan.volatile import SoftUpdate, WhyClass
from lavad.core.site import pend_reason
from lavad.processes.spans import KINDS, Span, spans_of
from lavad.replica.replica import Ended, Replica
from lavad.replica.spawn import child_socket, set_title
from lavad.store.asked import Find
from lavad.store.errors import StoreError
from lavad.store.read import Reader

MISSING = 3
"""Exit status: the packages of the extra ``otel`` are not installed."""
EVERY = 1.0
AT_ONCE = 2000
"""Events in one look."""
SPARED = 5
"""Niceness: everything else of the master goes first."""
PAUSE, TRIES = 10.0, 30
"""Between two tries to reach the collector, and how many there are until spans are dropped."""
MOST_SPECS, MOST_REASONS = 20_000, 50
MOST_ELEMENTS = 100_000
"""Elements of arrays whose events are kept until they end."""


class Sender(Protocol):
    """Where spans go."""

    def add(self, seed: str, spans: Sequence[Span]) -> None: ...


class Reasons:
    """Why the jobs of each spec waited, from when on (0: none did); the newest of each."""

    def __init__(self) -> None:
        self._of: OrderedDict[int, list[tuple[float, int]]] = OrderedDict()

    def learn(self, why: Mapping[int, WhyClass], now: float) -> None:
        for spec, one in why.items():
            code = one.reasons[0][0] if one.reasons else 0
            known = self._of.setdefault(spec, [])
            if code != (known[-1][1] if known else 0):
                known.append((one.at or now, code))
                del known[:-MOST_REASONS]
                self._of.move_to_end(spec)
        while len(self._of) > MOST_SPECS:
            self._of.popitem(last=False)

    def of(self, spec: int) -> Sequence[tuple[float, int]]:
        return self._of.get(spec, ())


class Traces:
    """What was read of the store, and what is known beside it."""

    def __init__(self, reader: Reader, sender: Sender, cluster: str, reasons: Reasons) -> None:
        self.reader, self.sender, self.cluster, self.reasons = reader, sender, cluster, reasons
        started = reader.site_events(["MasterStarted"], 0.0, float("inf"))
        self.seq = started[-1][0] if started else reader.version()
        self.conf = reader.conf()
        self._elements: OrderedDict[int, list[ev.Event]] = OrderedDict()

    def advance(self) -> bool:
        """Add the spans of jobs that have ended since; whether there may be more."""
        rows = self.reader.events_after(self.seq, AT_ONCE)
        ended: dict[int, int] = {}
        for seq, event in rows:
            if isinstance(event, ev.Configured):
                self.conf = event.conf
            elif isinstance(event, ev.JobFinished):
                ended[event.key] = seq
            elif isinstance(event, KINDS) and isinstance(event, ev.JobEvent) and index_of(event.key):
                self._elements.setdefault(event.key, []).append(event)
        if ended:
            self._add(ended)
        while len(self._elements) > MOST_ELEMENTS:
            self._elements.popitem(last=False)
        self.seq = rows[-1][0] if rows else self.seq
        return len(rows) >= AT_ONCE

    def _add(self, ended: dict[int, int]) -> None:
        jobs = self.reader.finished_jobs(Find(keys=tuple(ended)))
        specs = self.reader.specs(sorted({job.spec for job in jobs}))
        plain = self.reader.events_of_many([key for key in ended if not index_of(key)])
        for job in jobs:
            if job.key in ended:
                events: Sequence[ev.Event] = self._elements.pop(job.key, ())
                if not index_of(job.key):
                    events = [event for seq, event in plain.get(job_of(job.key), ()) if seq <= ended[job.key]]
                spec = specs.get(job.spec) or Spec(user="?", queue="?")
                self.sender.add(f"{self.cluster} {ended[job.key]} {job.key} {job.submitted}", self._spans(job, spec, events))

    def _spans(self, job: Job, spec: Spec, events: Sequence[ev.Event]) -> list[Span]:
        reasons = [(at, pend_reason.text(code, self.conf) if code else "") for at, code in self.reasons.of(job.spec)]
        return spans_of(job, spec, events, reasons, self.cluster)


def main() -> int:
    """Entry point: sends until the master is gone."""
    set_title("lava-traces")
    master, reasons = Replica(child_socket()), Reasons()

    def learn(news: SoftUpdate) -> None:
        reasons.learn(news.why or {}, time.time())
        master.soft.why.clear()

    master.noted = learn
    os.nice(SPARED)
    try:
        from lavad.processes.otlp import Exporter
    except ImportError:
        return MISSING
    try:
        while not master.site.database:
            master.wait(None)
        site = master.site
        exporter = Exporter(site.lsf["LAVA_TRACES"])
        traces = Traces(Reader.open(site.database), exporter, site.cluster, reasons)
        while True:
            more = traces.advance()
            tries = 0
            while not exporter.send():
                tries += 1
                if tries == TRIES:
                    _say(f"{exporter.drop()} spans are dropped: the collector did not take them")
                elif tries == 1:
                    _say("the collector does not take spans; they are kept and sent again")
                _listen(master, PAUSE)
            if not more:
                _listen(master, EVERY)
    except Ended:
        return 0
    except (OSError, StoreError) as error:
        _say(str(error))
        return 1


def _listen(master: Replica, seconds: float) -> None:
    """Take what the master hands on, for so long. Raises Ended once it is gone."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        master.wait(left)


def _say(line: str) -> None:
    print(f"traces of jobs: {line}", file=sys.stderr, flush=True)  # noqa: T201
