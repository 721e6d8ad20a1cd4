"""Resource requirements as ``bjobs -l`` and ``-o`` print them: queue's and job's together."""

from __future__ import annotations

from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.resreq.shown import chosen, shown
from lavad.queries.frame.view import View


def combined(view: View, spec: Spec) -> str:
    """The combined requirement."""
    return shown(view.queue(spec.queue).res_req, spec.resreq)


def effective(view: View, spec: Spec, job: Job) -> str:
    """What its attempt was placed by; "" before the first."""
    return "" if job.run is None else chosen(view.queue(spec.queue).res_req, spec.resreq, job.run.way)
