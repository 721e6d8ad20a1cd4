"""What a scheduling cycle proposes. The engine re-checks it with the same ledger before anything becomes true."""

from __future__ import annotations

import msgspec

from lavad.core.job import Placed
from lavad.core.soft import WhyClass


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Start this job or element (explicit index) on these hosts, the first being the first exec host."""

    key: int
    parts: tuple[Placed, ...]
    spec: int = 0
    """The class it was decided for (0: not said); a job that has another one by now stays pending."""


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cycle's result, made on ``version`` of the cluster."""

    version: int
    placements: tuple[Placement, ...] = ()
    why: dict[int, WhyClass] = {}
    """Spec number to why its remaining jobs wait (only classes that were looked at)."""
    why_job: dict[int, int] = {}
    """Job key to a pend reason of its own (array limit, begin time …)."""
    wake_at: float = 0.0
    """When time alone may make a job eligible (begin time, window); 0: never."""
