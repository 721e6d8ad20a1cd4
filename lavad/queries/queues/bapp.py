"""bapp: application profiles and the jobs that use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from config.model.queue import ApplicationConfig
from config.model.values import JobAction
from config.values.parameters import APPLICATION_PARAMETERS
from lavad.core.job.chunk import slots_in
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import SUSPENDED, JobState
from lavad.queries.facts import paragraphs
from lavad.queries.frame.formats import RULE
from lavad.queries.frame.request import Request, Shown, err, leave, out

HEADER = "APP_NAME           NJOBS   PEND    RUN   SUSP\n"


def show(request: Request) -> Iterator[Shown]:
    """A line a profile; -l at length."""
    options = request.options()
    profiles = request.cluster.conf.app_conf
    unknown = [word for word in request.words if word not in profiles]
    for word in unknown:
        yield err(f"{word}: No such application profile")
        yield leave(255)
    chosen = [app for name, app in profiles.items() if not request.words or name in request.words]
    if not chosen:
        if not unknown:
            raise Refused("No application profiles found")
        return
    counts = _counts(request)
    if "l" in options:
        yield out(RULE.join(_long(app, counts[app.name]) for app in chosen))
        return
    if "noheader" not in options:
        yield out(HEADER)
    for app in chosen:
        yield out(f"{app.name:<15} {_numbers(counts[app.name])}\n")


def _numbers(counts: Counter[str]) -> str:
    return f"{counts.total():>8} {counts['PEND']:>6} {counts['RUN']:>6} {counts['SSUSP'] + counts['USUSP']:>6}"


def _counts(request: Request) -> dict[str, Counter[str]]:
    """Slots by profile and state, as LSF counts them; those of jobs held while they wait are among PEND, as in bqueues."""
    cluster, view = request.cluster, request.view
    found: dict[str, Counter[str]] = {name: Counter() for name in cluster.conf.app_conf}
    for job in cluster.jobs.rows.values():
        spec = view.spec(job)
        if spec.app in found:
            waits = job.run is None or job.state is JobState.WAIT
            stopped = "SSUSP" if job.state is JobState.SSUSP else "USUSP" if job.state in SUSPENDED else "RUN"
            kind = "PEND" if waits else stopped
            slots = sum(map(slots_in, job.run.parts)) if job.run is not None else spec.slots
            found[spec.app][kind] += slots
    for array in cluster.arrays.rows.values():
        spec = view.spec(array)
        if spec.app in found:
            found[spec.app]["PEND"] += spec.slots * (len(array.pending) + len(array.held))
    return found


def _long(app: ApplicationConfig, counts: Counter[str]) -> str:
    lines = ["", f"APPLICATION NAME: {app.name}", f" -- {app.description or 'No description provided.'}", "", "STATISTICS:"]
    lines += ["     NJOBS     PEND      RUN    SSUSP    USUSP      RSV"]
    lines += [f"{counts.total():>10} {counts['PEND']:>8} {counts['RUN']:>8} {counts['SSUSP']:>8} {counts['USUSP']:>8} {0:>8}"]
    lines += ["", "PARAMETERS:"]
    for parameter in APPLICATION_PARAMETERS:
        values = ((line.title, line.text(getattr(app, parameter.field))) for line in parameter.lines)
        lines += [f"{title}:  {text}" for title, text in values if text]
    if app.chkpnt is not None and app.chkpnt.dir:
        lines.append(f"CHKPNT_DIR:  {app.chkpnt}")
    controls = [f"    {action + ':':<14}[{app.control(action)}]" for action in JobAction if app.control(action)]
    lines += ["", "JOB_CONTROLS:", *controls] if controls else []
    return "\n".join(lines) + f"\n{''.join(paragraphs.limits_of_profile(app, app.default_host_spec))}\n"
