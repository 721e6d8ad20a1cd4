"""bjobs -script and -env: what a job was submitted with. Only for its owner and administrators."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText
from lavad.core.lang.ids import job_of
from lavad.core.lang.ranges import Ranges
from lavad.core.site.rights import may_control
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, as_is, err, leave
from lavad.store.read import Find


def show(request: Request, options: Options, ids: dict[int, Ranges | None] | None) -> Iterator[Shown]:
    """The script or the environment of each job named."""
    if not ids:
        yield err("bjobs: job ID is required")
        yield leave(255)
        return
    found = 0
    for job in ids:
        record = _find(request, job)
        text = request.view.reader.text_of(job)
        if record is None or text is None:
            yield err(f"Job <{job}> is not found")
            continue
        found += 1
        spec = request.view.spec(record)
        if not may_control(request.cluster.conf, spec.user, spec.queue, request.caller):
            yield err(f"Job <{job}>: User permission denied")
            yield leave(255)
        elif "script" in options:
            yield as_is(_script(text))
        else:
            yield from _env(request, job, text)
    if not found:
        yield leave(255)


def _find(request: Request, job: int) -> Job | Array | None:
    cluster = request.cluster
    live = cluster.jobs.rows.get(job) or cluster.arrays.rows.get(job)
    if live is not None:
        return live
    ended = request.view.reader.finished_jobs(Find(keys=(job,)))
    return next((row for row in ended if job_of(row.key) == job), None) or request.view.reader.finished_array(job)


def _script(text: JobText) -> str:
    script = text.script or text.command
    return script if script.endswith("\n") else script + "\n"


def _env(request: Request, job: int, text: JobText) -> Iterator[Shown]:
    env = request.view.reader.env(text.env) if text.env else None
    if env is None:
        yield err(f"Job <{job}>: no environment is kept")
        yield leave(255)
        return
    yield as_is("".join(f"{name}={value}\n" for name, value in sorted(env.items())))
