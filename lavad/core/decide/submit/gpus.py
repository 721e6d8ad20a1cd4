"""What a job asks of GPUs: ``-gpu``, GPUs in rusage (``rusage[ngpus_physical=2]``), GPU_REQ and LSB_GPU_REQ, merged.

Rule: option by option the job's own ``-gpu`` comes first, then GPUs in its rusage, GPU_REQ of its application, of its queue,
GPUs in the queue's rusage, LSB_GPU_REQ. LSB_GPU_REQ alone gives a job no GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.model.queue import QueueConfig
from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.decide.submit.readers import reads
from lavad.core.job.spec import Spec
from lavad.core.lang import gpureq
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReq, ResReqError, RusageItem
from lavad.core.site.conf import Conf

_MODES = {"ngpus_physical": None, "ngpus": None, "ngpus_shared": "shared", "ngpus_excl_p": "exclusive_process"}
GPU_OPTIONS = frozenset(("gpu", "gpun", "R", "Rn", "app", "appn", "q", "qn"))
"""Options of bmod that may change which GPUs a job asks for."""


@reads("gpu")
def read_gpus(draft: JobDraft, option: str, value: OptionValue) -> None:
    """``num=2:mode=shared…``, or ``-``: GPUs as application, queue and cluster have it."""
    draft.set_spec(gpu_own=_parsed(text_of(option, value), draft.conf.params.resreq_unit_mb))


def settle_gpus(draft: JobDraft, queue: QueueConfig) -> None:
    """Set what the job asks of GPUs from all levels; raises Refused for what cannot be had."""
    spec = draft.spec
    own = spec.gpu_own
    by_role = any(role.gpus for role in spec.roles)
    outer = [level for level in _levels(spec, draft.conf, queue) if level is not None]
    if not by_role and own is None and (spec.roles or not outer):
        draft.set_spec(gpu=None)
        return
    merged = gpureq.merge(own or GpuReq(), *outer, _of_conf("lsf.conf: LSB_GPU_REQ", draft.conf.params.lsb_gpu_req))
    why = gpureq.why_not(merged)
    if why:
        raise Refused(why)
    if spec.roles and not by_role and own != GpuReq():
        raise Refused("No role asks for GPUs: with roles each role says how many GPUs a task gets")
    if "shared" in (merged.mps or "").split(","):
        note = f"GPU requirement mps={merged.mps}: shared has no effect, each job has MPS daemons of its own"
        draft.notices = [*draft.notices, note]
    draft.set_spec(gpu=merged)


def adopt_gpus(draft: JobDraft) -> None:
    """A job that a release before this one stored has the merged requirement only: that becomes its own."""
    spec = draft.spec
    queue = next((queue for queue in draft.conf.queues if queue.name == spec.queue), None)
    if spec.gpu is None or spec.gpu_own is not None or queue is None or spec.roles:
        return
    if not any(_levels(spec, draft.conf, queue)):
        draft.set_spec(gpu_own=spec.gpu)


def gpu_uses(req: ResReq) -> list[RusageItem]:
    """GPUs in rusage, without parts and alternatives."""
    return [use for rusage in req.rusage for use in rusage.uses if use.name in _MODES and use.amount > 0]


def _levels(spec: Spec, conf: Conf, queue: QueueConfig) -> Iterator[GpuReq | None]:
    """What is asked outside of ``-gpu``, the strongest first; raises Refused for an invalid number."""
    app = conf.app_conf.get(spec.app)
    yield _in_rusage(spec.resreq, conf, "Bad resource requirement")
    yield _of_conf(f"application profile {spec.app}: GPU_REQ", app.gpu_req if app is not None else "")
    yield _of_conf(f"queue {queue.name}: GPU_REQ", queue.gpu_req)
    yield _in_rusage(queue.res_req, conf, f"queue {queue.name}: RES_REQ")


def _parsed(text: str, unit_mb: float = 1.0) -> GpuReq:
    try:
        req = gpureq.parse(text, unit_mb)
    except gpureq.GpuReqError as error:
        raise Refused(str(error)) from None
    why = gpureq.why_not(req)
    if why:
        raise Refused(why)
    return req


def _of_conf(place: str, text: str) -> GpuReq | None:
    if not text:
        return None
    try:
        return _parsed(text)
    except Refused as why:
        raise Refused(f"{place}: {why.text}") from None


def _in_rusage(text: str, conf: Conf, place: str) -> GpuReq | None:
    if "ngpus" not in text:
        return None
    try:
        req = resreq.parse(text)
    except ResReqError as error:
        raise Refused(f"{place}: {error}") from None
    asked = gpu_uses(req)
    if any(map(gpu_uses, _parts(req))) or (asked and len(req.rusage) > 1):
        raise Refused(f"{place}: GPUs in parts or alternatives of it; ask for them with -gpu")
    if not asked:
        return None
    if len(asked) > 1:
        raise Refused(f"{place}: rusage[] asks for GPUs twice: {asked[0].name} and {asked[1].name}")
    use = asked[0]
    if use.amount != int(use.amount):
        raise Refused(f"{place}: rusage[{use.name}={use.amount:g}] is no number of GPUs")
    per = "task" if use.per == "task" or (not use.per and conf.params.resource_reserve_per_task) else "host"
    return GpuReq(num=int(use.amount), per=per, mode=_MODES[use.name])


def _parts(req: ResReq) -> Iterator[ResReq]:
    for part in (*(part for _, part in req.compound), *(part for part, _ in req.alternatives)):
        yield part
        yield from _parts(part)
