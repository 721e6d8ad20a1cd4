"""What counts against one limit of lsb.resources, and whether parts of a job would be too much for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from config.model.cluster import Limit
from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.site.pend_reason import LIMIT_JOBS, LIMIT_RESOURCE, LIMIT_SLOTS


class Sum:
    """What counts against one limit of lsb.resources."""

    __slots__ = ("amounts", "jobs", "preempted", "slots")

    def __init__(self) -> None:
        self.slots = 0
        self.jobs = 0
        self.preempted = 0
        """Those of ``jobs`` that are suspended by preemption."""
        self.amounts: defaultdict[str, float] = defaultdict(float)


def amounts_of(spec: Spec, part: Placed | Part) -> Iterable[tuple[str, float]]:
    """What a part counts against limits on resources: what it reserves, and its GPUs."""
    return (*part.reserved, *gpu_amounts(spec, len(part.gpus))) if part.gpus else part.reserved


def why_not_sum(at: int, limit: Limit, caps: dict[str, float], sum_: Sum, spec: Spec, parts: list[Placed], jobs: int) -> int:
    """Why these parts would break a limit; 0: they would not. ``caps``: the most of each resource; ``jobs``: of jobs then."""
    if not parts:
        return 0
    if limit.slots is not None and sum_.slots + sum(part.slots for part in parts) > limit.slots:
        return LIMIT_SLOTS + at
    if limit.jobs is not None and jobs > limit.jobs:
        return LIMIT_JOBS + at
    for name, cap in caps.items():
        asked = sum(amount for part in parts for own, amount in amounts_of(spec, part) if own == name)
        if asked and sum_.amounts[name] + asked > cap + 1e-6:
            return LIMIT_RESOURCE + at
    return 0
