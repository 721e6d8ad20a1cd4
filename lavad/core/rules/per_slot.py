"""Reservations of a job for each of its slots, so that a slot can be given back with its share of resources.

Rule: a reservation that is made once for a host stays until the job leaves the host.
"""

from __future__ import annotations

from lavad.core.job.job import Part, Placed
from lavad.core.job.resize import portion
from lavad.core.job.spec import Spec
from lavad.core.lang.resreq.text import ResReqError, combine, parse
from lavad.core.rules.gpus import per_task
from lavad.core.site.conf import Conf


def amounts(spec: Spec, conf: Conf) -> tuple[tuple[str, float], ...]:
    """(resource, amount) for one slot."""
    return tuple((name, amount) for name, amount, each in _uses(spec, conf) if each)


def _uses(spec: Spec, conf: Conf) -> tuple[tuple[str, float, bool], ...]:
    """(resource, amount, whether it is for each slot)."""
    outer = next((queue.res_req for queue in conf.queues if queue.name == spec.queue), "")
    try:
        own = parse(spec.resreq)
        both = combine(parse(outer), own) if outer else own
    except ResReqError:
        return ()
    uses = both.rusage[0].uses if both.rusage else ()
    return tuple((use.name, use.amount, conf.params.rusage_per(use.name, use.per) == "task") for use in uses)


def reserved(part: Part, spec: Spec, old: Spec, conf: Conf) -> tuple[tuple[str, float], ...]:
    """Reservations of a part after a change from the requirement of ``old`` to that of ``spec``; others stay."""
    now = _uses(spec, conf)
    before = {name for name, _, _ in _uses(old, conf)}
    kept = [(name, amount) for name, amount in part.reserved if name not in before and name not in {use[0] for use in now}]
    found = [(name, amount * part.slots if each else amount) for name, amount, each in now if amount > 0]
    return (*kept, *found)


def taken(part: Part, slots: int, spec: Spec, conf: Conf) -> Placed:
    """``slots`` slots of a part with their share of its resources; the last slot takes everything."""
    placed = portion(part, slots, amounts(spec, conf))
    if slots < part.slots and spec.gpu is not None and per_task(spec.gpu):
        each = spec.gpu.num or 1
        return Placed(host=placed.host, slots=slots, gpus=part.gpus[-slots * each :], reserved=placed.reserved)
    return placed
