"""The filters of bjobs that look at more than a state, an owner and a queue: eligibility, plans, exceptions, texts.

Rule: a test sees one job; what needs the text of the store goes batch by batch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq.text import ResReq, ResReqError, Rusage, parse
from lavad.core.lang.states import WAITING
from lavad.queries.facts import exceptions, reasons, slot_reservations
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request

Test = Callable[[Job], bool]
_BATCH = 500
_OF_NONE = ("fwd", "sla", "Lp", "data", "ss")
"""Forwarded to another cluster, in a service class, of a licence project, with data to stage, of session schedulers: none is."""


def job_tests(request: Request, options: Options) -> Iterator[Test]:
    """What the options ask of each job."""
    view, now = request.view, request.now
    if ("pe" in options) != ("pi" in options):
        wanted = "pe" in options
        yield lambda job: job.state in WAITING and reasons.is_eligible(view, job) is wanted
    if "plan" in options:
        yield lambda job: slot_reservations.find(view, job) is not None
    if "x" in options:
        yield lambda job: bool(exceptions.of(job, view, now))
    if options.any(*_OF_NONE):
        yield lambda job: False
    if "rusage" in options:
        yield _asks_for(request, options.text("rusage"))


def _asks_for(request: Request, text: str) -> Test:
    """-rusage: jobs that ask for all of these resources, in one of their alternatives."""
    names = set(text.replace(",", " ").split())
    if not names:
        raise Refused("bjobs: -rusage: no resource is named")
    known: dict[int, bool] = {}

    def test(job: Job) -> bool:
        found = known.get(job.spec)
        if found is None:
            try:
                asked = [{use.name for use in one.uses} for one in _rusages(parse(request.view.spec(job).resreq))]
            except ResReqError:
                asked = []
            found = known[job.spec] = any(names <= one for one in asked)
        return found

    return test


def _rusages(req: ResReq) -> Iterator[Rusage]:
    yield from req.rusage
    for inner in (*(term for _, term in req.compound), *(way for way, _ in req.alternatives)):
        yield from _rusages(inner)


def by_text(request: Request, options: Options, jobs: Iterator[Job]) -> Iterator[Job]:
    """-Jd: jobs whose description is this (``*`` stands for anything); -hostfile: those that have a host file."""
    exact = re.compile(re.escape(options.text("Jd")).replace(r"\*", ".*") if "Jd" in options else ".*", re.DOTALL)
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.texts(batch)
        for job in batch:
            text = texts[job.key]
            if exact.fullmatch(text.description) and (text.host_file or "hostfile" not in options):
                yield job
