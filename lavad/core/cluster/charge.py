"""Decayed usage of finished attempts by account: the history for fair share.

Rule: a ``Charge`` holds sums decayed up to its time ``at``. Each later event decays them by the time that has passed (to a tenth
in HIST_HOURS, as in LSF) and adds its own usage, so that the row is a fold of the events and needs no clock.
"""

from __future__ import annotations

from math import exp, expm1, log

import msgspec

from lavad.core.job.chunk import slots_in
from lavad.core.job.gpu_use import GpuSums, measured
from lavad.core.job.job import Attempt, Job
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf

Account = tuple[str, str, str]
"""Queue, user, and the user group that the job was submitted for (``-G``), "" if none."""
_LN10 = log(10.0)


class Charge(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Seconds of CPU, of slots and of GPUs, decayed up to ``at``."""

    queue: str
    user: str
    group: str = ""
    at: float = 0.0
    cpu: float = 0.0
    run: float = 0.0
    gpu: float = 0.0


def account_of(spec: Spec) -> Account:
    """The account that a job of this spec is charged to."""
    return spec.queue, spec.user, spec.user_group


def decayed(amount: float, seconds: float, hours: float) -> float:
    """What is left of an amount after ``seconds``, when it falls to a tenth in ``hours``; 0 hours: no decay."""
    if hours <= 0 or seconds <= 0:
        return amount
    return amount * exp(-_LN10 * seconds / (hours * 3600))


def mean_decayed(amount: float, seconds: float, hours: float) -> float:
    """What is left of an amount that was used evenly over the last ``seconds``; ``hours`` as in ``decayed``."""
    if hours <= 0 or seconds <= 0:
        return amount
    part = _LN10 * seconds / (hours * 3600)
    return amount * -expm1(-part) / part


def used_by(run: Attempt, at: float) -> tuple[float, float, float, float]:
    """(seconds that an attempt ran, its CPU seconds, slot seconds, GPU seconds)."""
    end = run.verdict.at if run.verdict is not None and run.verdict.at else at
    seconds = max(0.0, end - run.started) if run.started else 0.0
    cpu, slots, gpus = 0.0, 0, 0
    for part in run.parts:
        slots += slots_in(part)
        gpus += len(part.gpus)
        if part.end is not None:
            cpu += part.end.utime + part.end.stime
    slot_seconds, gpu_seconds, cpu_left = run.spent
    return seconds, cpu + cpu_left, max(0.0, slots * seconds + slot_seconds), max(0.0, gpus * seconds + gpu_seconds)


def gpus_used_by(run: Attempt, at: float) -> GpuSums:
    """What an attempt held and used of GPUs."""
    uses = [gpu for part in run.parts if part.end is not None for gpu in part.end.gpus]
    # of an attempt that ended at once the master knows no start
    held = used_by(run, at)[3] or sum(gpu.held for gpu in uses)
    return measured(uses).plus(run.gpus_left or GpuSums()).plus(GpuSums(held))


def _had_gpus(run: Attempt) -> bool:
    parts = any(part.gpus or (part.end is not None and part.end.gpus) for part in run.parts)
    return parts or run.spent[1] > 0 or run.gpus_left is not None


def gpus_with_attempt(job: Job, run: Attempt | None, at: float) -> GpuSums | None:
    """What a job held and used of GPUs in its attempts before and in this one, which is over; None: it had none."""
    if job.gpus_before is None and (run is None or not _had_gpus(run)):
        return None
    now = gpus_used_by(run, at) if run is not None else GpuSums()
    total = (job.gpus_before or GpuSums()).plus(now)
    return total if total.held > 0 else None


def charged(old: Charge | None, run: Attempt, spec: Spec, at: float, hours: float) -> Charge | None:
    """The account once an attempt that is over is added; None if it used nothing."""
    seconds, cpu, slots, gpus = used_by(run, at)
    if not (cpu or slots or gpus):
        return None
    queue, user, group = account_of(spec)
    if old is None:
        old = Charge(queue=queue, user=user, group=group, at=at)
    # an old sum must not grow when the clock was set back
    passed = at - old.at
    return Charge(
        queue=queue,
        user=user,
        group=group,
        at=max(at, old.at),
        cpu=decayed(old.cpu, passed, hours) + mean_decayed(cpu, seconds, hours),
        run=decayed(old.run, passed, hours) + mean_decayed(slots, seconds, hours),
        gpu=decayed(old.gpu, passed, hours) + mean_decayed(gpus, seconds, hours),
    )


def hist_hours(conf: Conf) -> dict[str, float]:
    """Queues with fair share, and those that follow the policy of another, to their HIST_HOURS."""
    found: dict[str, float] = {}
    for queue in conf.queues:
        if queue.share is not None:
            found.update(dict.fromkeys((queue.name, *queue.share.queues), queue.share.hist_hours))
    for part in conf.partitions:
        found = {queue.name: part.share.hist_hours for queue in conf.queues} | found
    return found
