"""SCHEDULER of a queue: in which order its jobs stand, beyond user priority and btop: a built-in policy, or a site's own module.

Rule: a class of equal jobs has one score, by its first job; the smaller goes first. A site's module is asked through
``Scorer``, which always answers: a module that fails has no say (``lavad.processes.site_policy``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec

Scorer = Callable[[str, dict[str, Any]], float]
"""(file of the module, what it is told of a job) -> score."""
NEVER = 1e18


def score(policy: str, spec: Spec, row: Job | Array, ask: Scorer | None) -> float:
    """The place of a job among those of its queue, the smaller first; 0 where the policy does not care."""
    if policy == "shortest":
        return NEVER if spec.expected is None else float(spec.expected)
    if policy == "smallest":
        return float(spec.slots)
    if policy == "largest":
        return -float(spec.slots)
    if policy.startswith("/") and ask is not None:
        return ask(policy, facts(spec, row))
    return 0.0


def facts(spec: Spec, row: Job | Array) -> dict[str, Any]:
    """What a module is told: no more than what decides where jobs stand."""
    return {
        "id": row.key & 0xFFFFFFFF if isinstance(row, Job) else row.job,
        "name": row.name,
        "submitted": row.submitted,
        "user": spec.user,
        "queue": spec.queue,
        "project": spec.project,
        "group": spec.group,
        "app": spec.app,
        "slots": spec.slots,
        "run_limit": spec.limits.run,
        "mem_limit": spec.limits.mem,
        "resreq": spec.resreq,
        "gpus": spec.gpu.num if spec.gpu is not None else 0,
        "priority": spec.priority,
    }
