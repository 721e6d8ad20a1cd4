"""GPUs asked for as LSF's resources: rusage[ngpus_physical=2], ngpus_shared, ngpus_excl_p mean what `-gpu num=2` says.

Rule: `-gpu` beside them decides, if it is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.decide.base.draft import Draft
from lavad.core.lang import gpureq
from lavad.core.lang.asks import Refused
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReq, Use

_MODES = {"ngpus_physical": None, "ngpus": None, "ngpus_shared": "shared", "ngpus_excl_p": "exclusive_process"}


def settle_gpus(draft: Draft) -> None:
    """Give a job the GPUs that its rusage names. Raises Refused for a number that is none."""
    if "ngpus" not in draft.spec.resreq:
        return
    req = resreq.parse(draft.spec.resreq)
    asked = _gpus(req)
    if any(map(_gpus, _parts(req))) or (asked and len(req.rusage) > 1):
        raise Refused("Bad resource requirement: GPUs in parts or alternatives of it; ask for them with -gpu")
    if not asked or draft.spec.gpu is not None:
        return
    use = asked[0]
    if use.amount != int(use.amount):
        raise Refused(f"Bad resource requirement: rusage[{use.name}={use.amount:g}] is no number of GPUs")
    per = "task" if use.per == "task" or (not use.per and draft.conf.params.rusage_per_task) else "host"
    own = GpuReq(num=int(use.amount), per=per, mode=_MODES[use.name])
    draft.set(gpu=gpureq.merge(own))


def _gpus(req: ResReq) -> list[Use]:
    return [use for rusage in req.rusage for use in rusage.uses if use.name in _MODES and use.amount > 0]


def _parts(req: ResReq) -> Iterator[ResReq]:
    for part in (*(part for _, part in req.compound), *(part for part, _ in req.alternatives)):
        yield part
        yield from _parts(part)
