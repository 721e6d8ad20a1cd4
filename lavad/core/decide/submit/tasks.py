"""How many tasks a compound requirement asks for: `-n` may be left out, and must fit where it is given."""

from __future__ import annotations

from lavad.core.decide.base.draft import Draft
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import ResReq, ResReqError
from lavad.core.lang.resreq.ways import MOST, MOST_PARTS, is_too_many


def settle_tasks(draft: Draft, asked: bool) -> None:
    """Set the slots of a job with a compound requirement; ``asked``: they were given by ``-n``. Raises Refused."""
    text = draft.spec.resreq
    if "{" not in text and "||" not in text:
        return
    req = resreq.parse(text)
    if is_too_many(req):
        raise Refused(f"Bad resource requirement: more than {MOST} alternatives, or {MOST_PARTS} parts in all")
    sums = _sums(req)
    if sums and not asked and draft.spec.max_slots == 1:
        most = max(count + rest for count, rest in sums)
        draft.set(slots=most, max_slots=most)
    _check(draft.spec, sums)


def check_tasks(spec: Spec, queue: str) -> None:
    """Whether a job fits the compound requirement of a queue, if it has none of its own. Raises Refused."""
    if "{" in queue and not spec.resreq:
        try:
            _check(spec, _sums(resreq.parse(queue)))
        except ResReqError:
            return


def _check(spec: Spec, sums: set[tuple[int, bool]]) -> None:
    for count, rest in sums:
        if not (count < spec.slots if rest else count == spec.slots == spec.max_slots):
            asked = f"{count} tasks{' and more' if rest else ''}"
            raise Refused(f"Bad resource requirement: its parts are {asked}, and -n asks for {spec.slots}")


def _sums(req: ResReq) -> set[tuple[int, bool]]:
    """Of each compound requirement: (tasks of the parts that are counted, whether a last part takes the rest)."""
    found = [part for part in (*(part for part, _ in req.alternatives), req) if part.compound]
    return {(sum(count for count, _ in part.compound), not all(count for count, _ in part.compound)) for part in found}
