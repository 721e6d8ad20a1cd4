"""bjdep (OpenLava's): each question of a job's dependency condition, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.decide.depend.depend import local_of
from lavad.core.lang.asks import Refused
from lavad.core.lang.dependency import parse, questions_of
from lavad.core.lang.ids import show as show_key
from lavad.core.rules.dependency_eval import answer_of
from lavad.local_time import local_time
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.jobs.bjdepinfo import Family


def show(request: Request) -> Iterator[Shown]:
    """A line a question and job."""
    request.options()
    if len(request.words) != 1:
        raise Refused("bjdep: one job ID is needed")
    family = Family(request)
    key = family.find(request.words[0])
    depend = family.depend(key)
    if depend is None:
        raise Refused("bjdep: Job has no dependencies.")
    yield out(f"Dependencies of job {request.words[0]}\n")
    yield out("DEPENDENCY  JOBID  JOB_STATUS   DEPENDENCY_STATUS\n")
    local = local_of(local_time(request.now))
    for question, ids in zip(questions_of(parse(depend.text)), depend.ids, strict=False):
        for job in ids:
            met = answer_of(request.cluster, question, (job,), local)
            state, _ = family.facts(job)
            yield out(f"{question.function:<11} {show_key(job):<7} {state:<12} {'true' if met else 'false'}\n")
