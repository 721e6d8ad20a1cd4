"""Absolute priority scheduling (APS_PRIORITY): one number for each pending job, largest first.

Rule: as LSF's APS_PRIORITY: a factor is its weight times the weighted sum of its subfactors (FS has none); a limit caps the
absolute value of a weighted (sub)factor; a (sub)factor counts only once the job has waited for its grace period. The default
weight of a factor is 1, of a subfactor 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from config.model.values import SUBFACTORS, Aps
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Params
from lavad.sched.needs.needs import Need


def value_of(aps: Aps, amounts: Mapping[str, float], waited: float) -> float:
    """The APS value of a job. ``amounts``: of its subfactors and FS; ``waited``: seconds since its submission."""
    weights, limits, graces = dict(aps.weights), dict(aps.limits), dict(aps.graces)

    def weighted(name: str, amount: float, default: float) -> float:
        if waited < graces.get(name, 0.0):
            return 0.0
        value = weights.get(name, default) * amount
        most = limits.get(name)
        return value if most is None else max(-most, min(most, value))

    total = weighted("FS", amounts.get("FS", 0.0), 0.0)
    for parent, names in SUBFACTORS.items():
        inner = sum(weighted(name, amounts.get(name, 0.0), 0.0) for name in names)
        total += weighted(parent, inner, 1.0)
    return total


def job_priority(params: Params, spec: Spec, submitted: float, now: float) -> float:
    """User priority with what JOB_PRIORITY_OVER_TIME has added since submission."""
    own = float(max(0, spec.priority))
    if params.job_priority_over_time is None:
        return own
    steps, seconds = params.job_priority_over_time
    return own + steps * max(0.0, (now - submitted) // seconds)


def amounts_of(need: Need, params: Params, submitted: float, now: float, share: float) -> dict[str, float]:
    """A pending job's subfactors; MEM and SWAP in MB for the whole job."""
    slots = need.most
    asked: dict[str, float] = dict(need.per_host)
    for name, amount in need.per_slot:
        asked[name] = asked.get(name, 0.0) + amount * slots
    return {
        "FS": share,
        "PROC": float(slots),
        "MEM": asked.get("mem", 0.0),
        "SWAP": asked.get("swp", 0.0),
        "JPRIORITY": job_priority(params, need.spec, submitted, now),
        "QPRIORITY": float(need.queue.priority),
    }
