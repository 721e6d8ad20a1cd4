"""What running jobs have used over time, for charts: at most 240 samples a job, of half as many times each time that it is full.

Kept in the query process's memory alone: it starts empty with the process, and ends with the job.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from lavad.core.plan.volatile import PartUsage, SoftUpdate
from proto.records import Sample

MOST_JOBS = 20_000
MOST = 240
_FIELDS = 4
"""Seconds since the first sample, CPUs in use, memory in MB, percent of its GPUs or -1."""


class _Series:
    """Of one attempt."""

    __slots__ = ("attempt", "cpu", "every", "start", "usage", "values")

    def __init__(self, attempt: int, start: float) -> None:
        self.attempt = attempt
        self.start = start
        self.every = 0.0
        """Seconds between two samples that are kept."""
        self.usage: dict[str, PartUsage] = {}
        self.cpu = -1.0
        """CPU seconds at the last sample; below 0: there is none."""
        self.values = array("f")


class UsageHistory:
    """By job."""

    def __init__(self) -> None:
        self._series: dict[int, _Series] = {}

    def note(self, news: SoftUpdate) -> None:
        """What hosts have reported."""
        for key in {use.key: None for _, use in news.usage}:
            self._add(key, [(host, use) for host, use in news.usage if use.key == key] if len(news.usage) > 1 else news.usage)

    def _add(self, key: int, found: Iterable[tuple[str, PartUsage]]) -> None:
        series = self._series.get(key)
        for host, use in found:
            if series is None or use.attempt > series.attempt:
                if series is None and len(self._series) >= MOST_JOBS:
                    return
                series = self._series[key] = _Series(use.attempt, use.at)
            if use.attempt == series.attempt:
                series.usage[host] = use
        if series is not None and series.usage:
            _sample(series)

    def forget(self, keys: Iterable[int]) -> None:
        """Of jobs that are over."""
        for key in keys:
            self._series.pop(key, None)

    def of(self, key: int) -> list[Sample]:
        """The samples of a job, oldest first."""
        series = self._series.get(key)
        if series is None:
            return []
        rows = zip(*(series.values[field::_FIELDS] for field in range(_FIELDS)), strict=True)
        return [
            Sample(at=series.start + at, cpus=round(cpus, 3), mem=int(mem * 1024), gpu=round(gpu, 1))
            for at, cpus, mem, gpu in rows
        ]


def _sample(series: _Series) -> None:
    now = max(use.at for use in series.usage.values())
    last = series.start + series.values[-_FIELDS] if series.values else series.start
    cpu = sum(use.cpu for use in series.usage.values())
    if series.values and now - last < max(series.every, 0.5):
        return
    cpus = max(0.0, cpu - series.cpu) / (now - last) if series.cpu >= 0 and now > last else 0.0
    gpus = [task.gpu_util for use in series.usage.values() for task in use.tasks if task.gpu_mem or task.gpu_util]
    mem = sum(use.rss for use in series.usage.values()) / 1024
    series.values.extend((now - series.start, cpus, mem, sum(gpus) / len(gpus) if gpus else -1.0))
    series.cpu = cpu
    if len(series.values) >= MOST * _FIELDS:
        series.values = _thinned(series.values)
        series.every = max(series.every, (now - series.start) / MOST) * 2


def _thinned(values: array[float]) -> array[float]:
    """Every other sample, its CPUs as the mean with the one before it."""
    found = array("f")
    for at in range(_FIELDS, len(values), 2 * _FIELDS):
        seconds, cpus, mem, gpu = values[at : at + _FIELDS]
        found.extend((seconds, (cpus + values[at - _FIELDS + 1]) / 2, max(mem, values[at - _FIELDS + 2]), gpu))
    return found
