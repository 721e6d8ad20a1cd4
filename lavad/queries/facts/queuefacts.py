"""What listings say about a queue: its status and job slots, what it owns of slots and GPUs, and the exceptions of its jobs."""

from __future__ import annotations

from typing import NamedTuple

from config.model.queue import QueueConfig
from lavad.core.cluster.usage_index import PEND, PSUSP, RSV, RUN, SSUSP, USUSP
from lavad.core.job.job import Job
from lavad.core.job.run_time import has_started, run_time
from lavad.core.lang.states import FINAL
from lavad.core.lang.windows import WindowError, is_open, parse_windows
from lavad.core.rules import ownership
from lavad.queries.facts import jobfacts
from lavad.queries.frame import formats
from lavad.queries.frame.view import View


class QueueRow:
    """A queue with its slots by state."""

    def __init__(self, view: View, conf: QueueConfig, now: float) -> None:
        self.view = view
        self.conf = conf
        self.now = now
        use = view.cluster.use
        counts = use.queues.get(conf.name) or [0] * 6
        self.pend = counts[PEND] + counts[PSUSP]
        self.jobs_waiting = use.queue_waiting.get(conf.name, 0)
        self.run, self.ssusp, self.ususp, self.rsv = counts[RUN], counts[SSUSP], counts[USUSP], counts[RSV]
        self.rsv += view.held_slots.queues[conf.name]
        self.susp = self.ssusp + self.ususp
        self.njobs = self.pend + self.run + self.susp + self.rsv
        self.state = view.cluster.queue_state(conf.name)

    @property
    def window_open(self) -> bool:
        """Whether its run and dispatch windows are open."""
        return all(self._is_open(text) for text in (self.conf.run_window, self.conf.dispatch_window))

    def _is_open(self, text: str) -> bool:
        try:
            return not text or is_open(parse_windows(text), formats.week_second(self.now))
        except WindowError:
            return True

    @property
    def status(self) -> str:
        """``Open:Active``."""
        active = self.state.active and self.window_open
        return f"{self._open}:{'Active' if active else 'Inactive'}"

    @property
    def long_status(self) -> str:
        """``Open:Inact_Adm``: with why it is inactive."""
        if not self.state.active:
            return f"{self._open}:Inact_Adm"
        return f"{self._open}:Active" if self.window_open else f"{self._open}:Inact_Win"

    @property
    def _open(self) -> str:
        return "Open" if self.state.open else "Closed"


def limit(value: float | None) -> str:
    """A limit in a column; ``-`` for none."""
    return "-" if value is None else f"{value:g}"


class OwnedParts(NamedTuple):
    """What queues own of slots, or of GPUs. ``queues``: (queue, what it has, what it deserves)."""

    what: ownership.Resource
    queues: list[tuple[QueueConfig, int, int]]


def owned(view: View) -> list[OwnedParts]:
    """What queues own parts of."""
    cluster = view.cluster
    found = []
    for what in ownership.owned(cluster.conf):
        total = what.total(cluster)
        gone = ownership.given_up(cluster, what)
        waiting = ownership.waiting(cluster, what, total)
        deserved = ownership.deal(total, ownership.claims(cluster, what, waiting))
        has = {queue.name: what.has(cluster, queue.name) - gone.get(queue.name, 0) for queue in cluster.conf.queues}
        found.append(OwnedParts(what, [(queue, has[queue.name], deserved[queue.name]) for queue in cluster.conf.queues]))
    return found


def owned_lines(view: View, name: str) -> str:
    """The lines of bqueues -l; "" where no queue owns slots or GPUs."""
    lines = ""
    for owns in owned(view):
        for queue, has, deserved in owns.queues:
            if queue.name == name:
                weight, most, kept = owns.what.terms(queue)
                lines += (
                    f"\nOWNED {owns.what.name.upper()}:  WEIGHT {weight or 1}  CAPABILITY {'-' if most is None else most}  "
                    f"GUARANTEE {kept}  RECLAIMABLE {'Y' if queue.reclaimable else 'N'}  DESERVED {deserved}  USED {has}\n"
                )
    return lines


def job_exceptions(job: Job, view: View, now: float) -> list[str]:
    """``overrun``, ``underrun``, ``idle``, ``runtime_est_exceeded``; nothing for a job that has not started."""
    spec = view.spec(job)
    queue = view.queue(spec.queue)
    if not has_started(job) or not (has_thresholds(queue) or spec.estimate):
        return []
    ran = run_time(job, now)
    found = []
    if job.state in FINAL:
        if queue.job_underrun is not None and ran < queue.job_underrun:
            found.append("underrun")
        return found
    if queue.job_overrun is not None and ran > queue.job_overrun:
        found.append("overrun")
    looked_at = ran > 0 and ran >= view.params.detect_idle_job_after
    if queue.job_idle is not None and looked_at and jobfacts.Usage(job, view).cpu / ran < queue.job_idle:
        found.append("idle")
    if spec.estimate and jobfacts.is_over_estimate(job, spec, view, now):
        found.append("runtime_est_exceeded")
    return found


def has_thresholds(queue: QueueConfig) -> bool:
    """Whether exceptions of the queue's jobs are looked for."""
    return (queue.job_overrun, queue.job_underrun, queue.job_idle) != (None, None, None)


def exception_table(view: View, queue: str, now: float) -> str:
    """The paragraph of bqueues -l, "" for a queue without thresholds."""
    conf = view.queue(queue)
    if not has_thresholds(conf):
        return ""
    counts = dict.fromkeys(("overrun", "underrun", "idle"), 0)
    for key in view.cluster.started:
        job = view.cluster.jobs.rows[key]
        if view.spec(job).queue == queue:
            for name in counts.keys() & job_exceptions(job, view, now):
                counts[name] += 1
    limits = (
        conf.job_overrun and f"{conf.job_overrun / 60:g}",
        conf.job_underrun and f"{conf.job_underrun / 60:g}",
        conf.job_idle and f"{conf.job_idle:.2f}",
    )
    cells = [(limit or "-", str(count) if limit else "-") for limit, count in zip(limits, counts.values(), strict=True)]
    rows = ((" Threshold ", [cell[0] for cell in cells]), (" Jobs      ", [cell[1] for cell in cells]))
    lines = [formats.joined(title, f"{one:>8}", f"{two:>16}", f"{three:>18}") + "\n" for title, (one, two, three) in rows]
    return "\nJOB EXCEPTION PARAMETERS:\n             OVERRUN(min)   UNDERRUN(min)    IDLE(cputime/runtime)\n" + "".join(lines)
