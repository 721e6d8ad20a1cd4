"""What listings say about one job: its hosts, times, limits and usage. No text layout here."""

from __future__ import annotations

import re
from typing import NamedTuple

from lavad.core.cluster.charge import used_by
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import End, Job, Part
from lavad.core.job.run_time import counted, limit_of, run_time
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import JobState, TermReason
from lavad.core.plan.volatile import PartUsage
from lavad.core.rules.cpu_factors import factor_of, seconds_on
from lavad.queries.frame.request import Options, Request
from lavad.queries.frame.view import View

_FACTOR = re.compile(r"\d{1,15}(\.\d{0,15})?|\.\d{1,15}", re.ASCII)
TERM_TEXTS = {
    TermReason.TERM_OWNER: "job killed by owner",
    TermReason.TERM_ADMIN: "job killed by root or LSF administrator",
    TermReason.TERM_RUNLIMIT: "job killed after reaching LSF run time limit",
    TermReason.TERM_CPULIMIT: "job killed after reaching LSF CPU usage limit",
    TermReason.TERM_MEMLIMIT: "job killed after reaching LSF memory usage limit",
    TermReason.TERM_SWAP: "job killed after reaching LSF swap usage limit",
    TermReason.TERM_PROCESSLIMIT: "job killed after reaching LSF process limit",
    TermReason.TERM_THREADLIMIT: "job killed after reaching LSF thread limit",
    TermReason.TERM_OUTPUTLIMIT: "job killed after reaching the limit of output that its host keeps",
    TermReason.TERM_OUTPUTDISK: "job killed because its output filled the disk on which its host keeps output",
    TermReason.TERM_DEADLINE: "job killed after deadline expires",
    TermReason.TERM_FORCE_OWNER: "job killed by owner without time for cleanup",
    TermReason.TERM_FORCE_ADMIN: "job killed by root or LSF administrator without time for cleanup",
    TermReason.TERM_REQUEUE_OWNER: "job killed and requeued by owner",
    TermReason.TERM_REQUEUE_ADMIN: "job killed and requeued by root or LSF administrator",
    TermReason.TERM_REQUEUE_RC: "job exited with a requeue exit value",
    TermReason.TERM_CHKPNT: "job killed after checkpointing",
    TermReason.TERM_CWD_NOTEXIST: "current working directory is not accessible or does not exist on the execution host",
    TermReason.TERM_UNKNOWN: "LSF cannot determine a termination reason",
    TermReason.TERM_ZOMBIE: "job exited while LSF is not available",
    TermReason.TERM_PREEMPT: "job killed after preemption",
    TermReason.TERM_LOAD: "job killed after load exceeds threshold",
    TermReason.TERM_EXTERNAL_SIGNAL: "job killed by a signal external to LSF",
    TermReason.TERM_OTHER: "job ended for another reason",
    TermReason.TERM_ORPHAN_SYSTEM: "the orphan job was automatically terminated by LSF",
    TermReason.TERM_WINDOW: "job killed after queue run window closed",
}


def term_text(reason: TermReason) -> str:
    """``TERM_OWNER: job killed by owner``."""
    return f"{reason.name}: {TERM_TEXTS.get(reason, 'job killed')}"


def parts_of(job: Job) -> tuple[Part, ...]:
    """Where the job runs, or ran last."""
    return job.run.parts if job.run is not None else ()


def has_run(job: Job) -> bool:
    """Whether its processes run, or have run, in this attempt."""
    run = job.run
    return run is not None and bool(run.started or (run.verdict is not None and run.verdict.started))


def execution_folder(job: Job, text: JobText) -> str:
    """The folder that it runs in on its first host, or ran in last; "": it has not run."""
    if job.run is None or not has_run(job):
        return ""
    end = job.run.parts[0].end  # of a job that was over before its start was reported
    return job.run.cwd or (end.cwd if end is not None else "") or text.cwd


def cpus_of(part: Part) -> str:
    """The processors that the tasks of a part are bound to: ``0,1 2,3``; "" where they are not."""
    return " ".join(",".join(map(str, bind.cpus)) for bind in part.binds)


def host_slots(job: Job, short: bool) -> list[str]:
    """Exec hosts, one word per slot, or ``3*ol2`` with LSB_SHORT_HOSTLIST."""
    words: list[str] = []
    for part in parts_of(job):
        if short:
            words.append(f"{part.slots}*{part.host}" if part.slots > 1 else part.host)
        else:
            words += [part.host] * slots_in(part)
    return words


def exec_hosts(job: Job, view: View) -> str:
    """``ol2:ol1``; "" for a job that has none."""
    return ":".join(host_slots(job, view.short_hosts))


def slots_of(job: Job, spec: Spec) -> int:
    """Slots that a job has, or asks for while it waits."""
    return sum(map(slots_in, parts_of(job))) or spec.slots


def end_of(job: Job) -> float:
    """When it finished; 0 if it has not."""
    return job.outcome.at if job.outcome is not None else 0.0


def run_limit(job: Job, spec: Spec, view: View) -> float | None:
    """The run limit on its first host in seconds, scaled by CPU factors unless ABS_RUNLIMIT."""
    limit = limit_of(job, spec)
    parts = parts_of(job)
    return limit if limit is None or not parts else seconds_on(view.cluster, spec, limit, parts[0].host)


def pend_limits(view: View, spec: Spec, text: JobText) -> tuple[int, int]:
    """Seconds that a job should wait at most, and in which it could start: its own, its profile's or its queue's; 0: not said."""
    conf = view.cluster.conf
    profiles = [one for one in (conf.app_conf.get(spec.app), view.cluster.queue_conf.get(spec.queue)) if one is not None]
    total = [text.pend_limit * 60, *(one.pend_time_limit for one in profiles)]
    eligible = [text.eligible_limit * 60, *(one.eligible_pend_time_limit for one in profiles)]
    return next(filter(None, total), 0), next(filter(None, eligible), 0)


def cpu_factor(view: View, name: str) -> float:
    """The CPU factor of a host or model, 1 if unknown."""
    return factor_of(view.cluster, name)


def asked_cpu_factor(request: Request, options: Options) -> float:
    """What -N multiplies CPU times by: a factor, or that of a host or model."""
    given = options.text("N")
    if not given:
        return 1.0
    if _FACTOR.fullmatch(given):
        return float(given)
    if given not in request.cluster.conf.model_factors and given not in request.cluster.hosts.rows:
        raise Refused(f"{given}: Bad host specification")
    return cpu_factor(request.view, given)


def _estimate(job: Job, spec: Spec, view: View) -> float:
    """Seconds that it is estimated to run on its first host; 0: there is no estimate."""
    parts = parts_of(job)
    return seconds_on(view.cluster, spec, spec.estimate, parts[0].host) if spec.estimate and parts else spec.estimate


def is_over_estimate(job: Job, spec: Spec, view: View, now: float) -> bool:
    """Whether a job with an estimate runs longer than that."""
    return counted(job, now) > _estimate(job, spec, view)


def expected(job: Job, spec: Spec, view: View, now: float) -> tuple[float, str] | None:
    """Seconds that it may run and LSF's mark: E by its estimate, X the estimate is over, L by its run limit."""
    limit, estimate = run_limit(job, spec, view), _estimate(job, spec, view)
    if estimate and counted(job, now) <= estimate:
        return estimate, "E"
    if limit is None:
        return (estimate, "X") if estimate else None
    return limit, "X" if estimate else "L"


def time_left(job: Job, spec: Spec, view: View, now: float) -> tuple[float, str] | None:
    """Seconds until it is expected to end, and the mark; None without a limit or estimate, and for a job that does not run."""
    found = expected(job, spec, view, now)
    if found is None or job.run is None or job.outcome is not None:
        return None
    return max(found[0] - counted(job, now), 0.0), found[1]


def complete(job: Job, spec: Spec, view: View, now: float) -> tuple[float, str] | None:
    """How much of the expected time is over, in percent, and the mark."""
    found = expected(job, spec, view, now)
    if found is None or not found[0] or job.run is None or job.outcome is not None:
        return None
    return min(counted(job, now) / found[0], 1.0) * 100, found[1]


def ends(job: Job) -> list[End]:
    """How the parts ended; the verdict of the attempt where no part has an end of its own."""
    if job.run is None:
        return []
    found = [part.end for part in job.run.parts if part.end is not None]
    return found or ([job.run.verdict] if job.run.verdict is not None else [])


def cpu_time(job: Job) -> float:
    """Seconds that its newest attempt has used where it is over, those of hosts that had left it included."""
    return sum(end.utime + end.stime for end in ends(job)) + cpu_left(job)


def cpu_left(job: Job) -> float:
    """CPU seconds of hosts that have left its newest attempt, which went on without them."""
    return job.run.spent[2] if job.run is not None else 0.0


def slot_seconds(job: Job, now: float) -> float:
    """Slots that its newest attempt had, each for as long as it had it, in seconds."""
    held = used_by(job.run, end_of(job) or now)[2] if job.run is not None else 0.0
    # of an attempt that ended at once the master knows no start
    return held or sum(map(slots_in, parts_of(job))) * run_time(job, now)


class _Peak(NamedTuple):
    """The most that a part has used, or used until it ended."""

    mem: int
    swap: int
    average: int
    cpu: float
    cpu_after: float


def _peak_of(usage: PartUsage) -> _Peak:
    mem, swap = max(usage.max_mem, usage.rss), max(usage.max_swap, usage.swap)
    return _Peak(mem, swap, usage.avg_mem or usage.rss, usage.cpu_peak, usage.cpu_peak_after)


def _peak_at_end(end: End) -> _Peak:
    return _Peak(end.max_mem, end.max_swap, end.avg_mem, end.cpu_peak, end.cpu_peak_after)


class Usage:
    """What a job uses or used in all: live from the hosts' reports, else from how its parts ended. Sizes in KB."""

    def __init__(self, job: Job, view: View) -> None:
        live = view.soft.usage.get(job.key, {}) if job.outcome is None else {}
        self.parts: dict[str, PartUsage] = {}
        """Host to what it has reported, in the order of the job's hosts."""
        for part in parts_of(job) if live else ():
            if (found := live.get(part.host)) is not None and found.attempt == job.attempt:
                self.parts[part.host] = found
        ended = ends(job)
        values = self.parts.values()
        over = _ended_parts(job)
        gone = [end for part, end in over if part.host not in self.parts] if self.parts else ended
        self.known = bool(self.parts or ended)
        self.at = max((usage.at for usage in values), default=0.0)
        self.cpu = sum(u.cpu for u in values) + sum(e.utime + e.stime for e in gone) + cpu_left(job)
        self.utime = sum(e.utime for e in ended)
        self.stime = sum(e.stime for e in ended)
        self.mem = sum(u.rss for u in values)
        self.pss = sum(u.pss for u in values)
        self.swap = sum(u.swap for u in values)
        self.threads = sum(u.threads for u in values) or max((e.max_threads for e in ended), default=0)
        peaks = [*map(_peak_of, values), *map(_peak_at_end, gone)]
        self.max_mem = sum([peak.mem for peak in peaks])
        self.max_swap = sum([peak.swap for peak in peaks])
        self.avg_mem = sum([peak.average for peak in peaks])
        self.cpu_peak = sum([peak.cpu for peak in peaks])
        self.cpu_peak_after = max([peak.cpu_after for peak in peaks], default=0.0)
        hosts = {host: (part.cpu, part.gpus) for host, part in self.parts.items()}
        hosts |= {part.host: (end.utime + end.stime, end.gpus) for part, end in over if part.host not in self.parts}
        self.gpus = [(host, listed) for host, (_, listed) in hosts.items() if listed]
        """Host to what is used of its GPUs."""
        self.cpu_of = {host: cpu for host, (cpu, _) in hosts.items()}
        self.pids = [pid for u in values for pid in u.pids]
        if job.outcome is not None:
            self.mem, self.swap = self.max_mem, self.max_swap


def _ended_parts(job: Job) -> list[tuple[Part, End]]:
    return [(part, part.end) for part in parts_of(job) if part.end is not None]


class Efficiency:
    """How well a job uses, or used, what it has: percent of its slots and of the memory that it reserves (0: none)."""

    def __init__(self, job: Job, spec: Spec, usage: Usage, now: float) -> None:
        slots, held = slots_of(job, spec), slot_seconds(job, now)
        asked = sum(amount for part in parts_of(job) for name, amount in part.reserved if name == "mem")
        self.cpu = 100 * usage.cpu / held if held else 0.0
        self.peak = 100 * usage.cpu_peak / slots if slots else 0.0
        self.memory = 100 * usage.max_mem / 1024 / asked if asked else 0.0


def exit_code(job: Job) -> int | None:
    """The exit code of a job in state EXIT, 128 + N for signal N; None for other jobs."""
    if job.outcome is None or job.state is not JobState.EXIT or job.run is None:
        return None
    status = job.outcome.status
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8 & 0xFF
