"""The combined requirement of queue and job as text, as shown by ``bjobs -l`` and in LSB_EFFECTIVE_RSRCREQ."""

from __future__ import annotations

from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.ways import ways
from lavad.core.lang.text_cache import text_cache

DEFAULT_ORDER = "order[r15s:pg]"


@text_cache
def shown(queue: str, job: str) -> str:
    """The combined requirement of a queue and a job, with the defaults written out."""
    try:
        req = resreq.combine(resreq.parse(queue), resreq.parse(job))
    except resreq.ResReqError:
        return job
    return _text(req)


@text_cache
def chosen(queue: str, job: str, way: int) -> str:
    """The alternative (number ``way``) of the combined requirement that the job was placed by."""
    try:
        found = ways(resreq.parse(queue), resreq.parse(job))
    except resreq.ResReqError:
        return job
    return _text(found[way].whole) if way < len(found) else shown(queue, job)


def _text(req: resreq.ResReq) -> str:
    if req.compound:
        return "+".join((f"{count}*" if count else "") + f"{{{_text(part)}}}" for count, part in req.compound)
    if req.alternatives:
        return resreq.show(req)
    text = resreq.show(req)
    if not req.order:
        head, bracket, rest = text.partition("] ") if text.startswith("select[") else ("", "", text)
        text = f"{head}{bracket}{DEFAULT_ORDER} {rest}" if bracket else f"{text} {DEFAULT_ORDER}".strip()
        if not bracket and not text.startswith("select["):
            text = f"{DEFAULT_ORDER} {rest}".strip()
    return text if text.startswith("select[") else f"select[type == local] {text}"
