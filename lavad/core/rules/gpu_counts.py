"""How many GPUs jobs of one spec ask for, and how many of their slots a number of GPUs is enough for: for limits and shares."""

from __future__ import annotations

from functools import lru_cache

from lavad.core.job.spec import Spec
from lavad.core.lang.resreq.text import ResReqError, parse
from lavad.core.rules.gpus import per_task, wanted
from lavad.core.rules.ledger import UNLIMITED


def gpus_asked(spec: Spec) -> int:
    """How many GPUs a job of this spec takes at least: on how many hosts it will be, its requirement may tell (ptile)."""
    return sum(role.gpus * role.least for role in spec.roles) if spec.roles else _gpus_with(spec, spec.slots)


def most_gpus_asked(spec: Spec) -> int:
    """How many GPUs a job of this spec takes when it gets all its slots."""
    return sum(role.gpus * role.count for role in spec.roles) if spec.roles else _gpus_with(spec, max(spec.slots, spec.max_slots))


def _gpus_with(spec: Spec, slots: int) -> int:
    if spec.gpu is None:
        return 0
    tile = 0 if per_task(spec.gpu) or "ptile" not in spec.resreq else _tile(spec.resreq)
    return wanted(spec.gpu, slots) * (-(-slots // tile) if tile else 1)


def slots_with_gpus(spec: Spec, gpus: int) -> int:
    """The slots that jobs of this spec may take with so many GPUs; where GPUs do not go by slots, any number or none."""
    if spec.gpu is not None and per_task(spec.gpu) and not spec.roles:
        return gpus // (spec.gpu.num or 1)
    return UNLIMITED if gpus >= gpus_asked(spec) else 0


@lru_cache(maxsize=1024)
def _tile(resreq: str) -> int:
    """span[ptile=n]; 0: it says nothing of the kind."""
    try:
        span = parse(resreq).span
    except ResReqError:
        return 0
    return span.n if span is not None and span.kind == "ptile" and not span.by_type else 0
