"""GPUs held idle by jobs that wait (``gpu_held_idle_seconds``) and that run, and a log of jobs in a deadlock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain

from lavad.committed import Committed
from lavad.core.events import JobDeadlocked
from lavad.core.job.job import Job
from lavad.core.lang.ids import show
from lavad.core.plan.volatile import Soft
from proto.gpu_waste import IDLE

log = logging.getLogger(__name__)


class HeldGpus:
    """GPUs held by jobs that have not started, summed up over time."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}
        self._at = 0.0
        self._seconds = 0.0

    def note(self, jobs: Iterable[Job], now: float) -> None:
        """These jobs have changed."""
        self._seconds = self.seconds(now)
        self._at = now
        for job in jobs:
            if not job.promised and not self._held:
                continue
            waits = job.run is None and job.outcome is None
            gpus = sum(len(part.gpus) for part in job.promised) if waits else 0
            if gpus:
                self._held[job.key] = gpus
            else:
                self._held.pop(job.key, None)

    def seconds(self, now: float) -> float:
        """GPU seconds held idle so far."""
        return self._seconds + sum(self._held.values()) * max(0.0, now - self._at)


def gpus_of_running_jobs(soft: Soft) -> tuple[int, int]:
    """(how many GPUs jobs that run hold, how many of them are idle), by the newest samples."""
    gpus = [gpu for hosts in list(soft.usage.values()) for part in list(hosts.values()) for gpu in part.gpus]
    return len(gpus), sum(0 <= gpu.util < IDLE for gpu in gpus)


class HeldWatch:
    """Listens to commits."""

    def __init__(self, jobs: Iterable[Job], clock: Callable[[], float]) -> None:
        self._clock = clock
        self.gpus = HeldGpus()
        self.gpus.note([job for job in jobs if job.promised], clock())

    def gpu_held_idle_seconds(self) -> float:
        """GPU seconds that waiting jobs have held since this master began."""
        return self.gpus.seconds(self._clock())

    def committed(self, committed: Committed) -> None:
        """Count a committed batch."""
        self.gpus.note(chain(committed.changed, committed.finished), self._clock())
        for event in committed.events if JobDeadlocked in committed.kinds else ():
            if isinstance(event, JobDeadlocked):
                others = ", ".join(map(show, event.others[:9]))
                log.warning("deadlock: job %s and jobs %s hold what the others wait for", show(event.key), others)
