"""The scheduler at its largest: a million jobs in a hundred classes, and a hundred thousand classes, on 10,000 hosts.

Each mark is measured in a process of its own, so that memory is that of the mark alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.cycle import LOCAL, NOW, make, submit
from benchmarks.line import Line, line
from cli.local.folder import ROOT
from lavad.collector import look_rarely
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.events.apply import apply
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import Ranges
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.sched.cycle import cycle, plan_builder
from lavad.sched.state.scheduler_cache import SchedulerCache

METRICS = ("mark_million_start", "mark_million_bytes", "mark_element_bytes", "mark_classes_first", "mark_classes_idle")
HOSTS = 10_000
STARTED = 1_000


def lines(wanted: set[str]) -> Iterator[Line]:
    """Milliseconds of CPU, or bytes a job."""
    for mark, metrics in MARKS.items():
        if wanted.intersection(metrics):
            words = [sys.executable, "-m", "benchmarks.marks", mark]
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
            for metric, unit, values, note in json.loads(done.stdout):
                if metric in wanted:
                    yield line(metric, unit, values, (), note)


def _cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return (time.process_time() - start) * 1000, result


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def _accept(cluster: Cluster, plan: Plan, seed: str) -> None:
    for event in accept_plan(cluster, plan, NOW, seed):
        apply(cluster, event)
    cluster.forget_changes()


def million() -> list[tuple[str, str, list[float], str]]:
    """1,000,000 jobs of 100 classes: cycles that start 1,000 of them each."""
    cluster, soft = make(HOSTS, 16)
    classes, jobs = 100, 1_000_000
    for number in range(1, classes + 1):
        spec = Spec(user=f"u{number}", queue="normal", resreq=f"rusage[mem={100 + number}]")
        apply(cluster, ev.SpecAdded(at=NOW, spec=number, value=spec))
    before = _rss()
    for key in range(1, jobs + 1):
        apply(cluster, ev.JobSubmitted(at=NOW, key=key, spec=1 + key % classes, name="job"))
        if not key % 1000:
            cluster.forget_changes()
    plan_builder.MAX_PLACEMENTS = STARTED
    cache = SchedulerCache()
    times = []
    for turn in range(6):
        took, plan = _cpu(lambda: cycle.schedule(cluster, soft, NOW, LOCAL, cache))
        times.append(took)
        _accept(cluster, plan, f"s{turn}")
    each = (_rss() - before) / jobs
    note = f"starts {STARTED} of 1,000,000 jobs, 100 classes, {HOSTS} hosts; the first, which reads all: {times[0]:.0f}"
    return [
        ("mark_million_start", "ms", times[1:], note),
        ("mark_million_bytes", "bytes", [each], "a separate pending job, in a replica that schedules"),
    ]


def elements() -> list[tuple[str, str, list[float], str]]:
    """Arrays of 1,000: what a pending element costs."""
    cluster, soft = make(100, 16)
    for number in range(1, 51):
        apply(cluster, ev.SpecAdded(at=NOW, spec=number, value=Spec(user=f"u{number}", queue="normal")))
    before = _rss()
    for key in range(1, 2_001):
        span = Ranges.span(1, 1_000)
        event = ev.JobSubmitted(at=NOW, key=key, spec=1 + key % 50, name="job", indices=span, spec_text="job[1-1000]")
        apply(cluster, event)
    cluster.forget_changes()
    cycle.schedule(cluster, soft, NOW, LOCAL, SchedulerCache())
    note = "a pending element of 2,000 arrays of 1,000, in a replica that schedules"
    return [("mark_element_bytes", "bytes", [(_rss() - before) / 2_000_000], note)]


def classes() -> list[tuple[str, str, list[float], str]]:
    """100,000 classes of one job each, on hosts that are nearly full."""
    cluster, soft = make(HOSTS, 16)
    _fill(cluster, soft, HOSTS * 16 - 200)
    for number in range(2, 100_002):
        submit(cluster, number, Spec(user=f"u{number % 50}", queue="normal", resreq=f"rusage[mem={100 + number}]"))
    cluster.forget_changes()
    cache = SchedulerCache()
    first, plan = _cpu(lambda: cycle.schedule(cluster, soft, NOW, LOCAL, cache))
    _accept(cluster, plan, "first")
    after, _ = _cpu(lambda: cycle.schedule(cluster, soft, NOW, LOCAL, cache))
    idle = [_cpu(lambda: cycle.schedule(cluster, soft, NOW, LOCAL, cache))[0] for _ in range(5)]
    note = f"100,000 classes of one job on {HOSTS} nearly full hosts; the cycle after its plan: {after:.0f}"
    return [("mark_classes_first", "ms", [first], note), ("mark_classes_idle", "ms", idle, "the same when nothing has changed")]


def _fill(cluster: Cluster, soft: Soft, slots: int) -> None:
    submit(cluster, 1, Spec(user="u", queue="normal"), elements=slots)
    cache = SchedulerCache()
    turn = 0
    while cluster.pending:
        _accept(cluster, cycle.schedule(cluster, soft, NOW, LOCAL, cache), f"fill{turn}")
        turn += 1


MARKS = {
    "million": ("mark_million_start", "mark_million_bytes"),
    "elements": ("mark_element_bytes",),
    "classes": ("mark_classes_first", "mark_classes_idle"),
}

if __name__ == "__main__":
    look_rarely()  # as the process that schedules
    print(json.dumps({"million": million, "elements": elements, "classes": classes}[sys.argv[1]]()))
