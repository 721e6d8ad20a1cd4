"""Options about the hosts of a job: resource requirement, named hosts, GPUs, exclusive use.

Rule: ``-gpu`` overrides GPUs that are requested as LSF's resources (``rusage[ngpus_physical=2]``).
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import reads, texts_of
from lavad.core.lang import gpureq
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReq, RusageItem

_GPU_MODES = {"ngpus_physical": None, "ngpus": None, "ngpus_shared": "shared", "ngpus_excl_p": "exclusive_process"}


@reads("R")
def read_requirement(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Several are merged, as LSF does."""
    try:
        merged = resreq.merge(texts_of(option, value), draft.conf.params.resreq_unit_mb)
        parsed = resreq.parse(merged)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    missing = resreq.unsupported(parsed)
    if missing:
        raise Refused(f"Bad resource requirement: {missing} is not supported by lava")
    unknown = resreq.unknown_names(parsed, draft.known_resources)
    if unknown:
        raise Refused(f"unknown resource <{unknown[0]}>: Bad resource requirement syntax")
    kinds = resreq.unit_types(parsed)
    wrong = next((kind for kind in kinds if kind not in (*draft.conf.params.unit_types, "")), None)
    if wrong is not None or (kinds and not draft.conf.params.units):
        raise Refused(f"Bad resource requirement: cu[]: no compute units{f' of type <{wrong}>' if wrong else ''} are configured")
    draft.set_spec(resreq=merged)


@reads("m")
def read_hosts(draft: JobDraft, option: str, value: OptionValue) -> None:
    """Hosts and host groups that there are, each perhaps with ``+n`` or ``!``."""
    words = text_of(option, value).split()
    if not words:
        raise Refused("Bad host name, host group name or cluster name")
    for word in words:
        name = base_host(word)
        if name not in draft.known_hosts:
            raise Refused(f"{name}: Bad host name, host group name or cluster name")
    draft.set_spec(hosts=tuple(words))


def base_host(word: str) -> str:
    """The host or group name of a ``-m`` word: without ``+n`` and ``!``."""
    return word.rstrip("!").partition("+")[0]


@reads("x")
def read_exclusive(draft: JobDraft, option: str, value: OptionValue) -> None:
    """No other job on its hosts."""
    if value:
        draft.set_spec(exclusive=True)


@reads("gpu")
def read_gpus(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``num=2:mode=shared…``, or ``-`` for the defaults."""
    try:
        req = gpureq.parse(text_of(option, value))
    except gpureq.GpuReqError as error:
        raise Refused(str(error)) from None
    missing = gpureq.unsupported(req)
    if missing:
        raise Refused(f"GPU requirement {missing[0]} is not supported by lava")
    draft.set_spec(gpu=req)


def settle_gpus(draft: JobDraft) -> None:
    """Set the GPU requirement from GPUs in rusage; raises Refused for an invalid number."""
    if "ngpus" not in draft.spec.resreq:
        return
    req = resreq.parse(draft.spec.resreq)
    asked = _gpu_uses(req)
    if any(map(_gpu_uses, _parts(req))) or (asked and len(req.rusage) > 1):
        raise Refused("Bad resource requirement: GPUs in parts or alternatives of it; ask for them with -gpu")
    if not asked or draft.spec.gpu is not None:
        return
    use = asked[0]
    if use.amount != int(use.amount):
        raise Refused(f"Bad resource requirement: rusage[{use.name}={use.amount:g}] is no number of GPUs")
    per = "task" if use.per == "task" or (not use.per and draft.conf.params.resource_reserve_per_task) else "host"
    own = GpuReq(num=int(use.amount), per=per, mode=_GPU_MODES[use.name])
    draft.set_spec(gpu=gpureq.merge(own))


def _gpu_uses(req: ResReq) -> list[RusageItem]:
    return [use for rusage in req.rusage for use in rusage.uses if use.name in _GPU_MODES and use.amount > 0]


def _parts(req: ResReq) -> Iterator[ResReq]:
    for part in (*(part for _, part in req.compound), *(part for part, _ in req.alternatives)):
        yield part
        yield from _parts(part)
