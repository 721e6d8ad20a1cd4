"""bjobs: which jobs, then one of its formats; or the script or environment of jobs.

Rule: ids that are not found exit 255 only where no job at all is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText
from lavad.core.lang.ids import job_of
from lavad.core.lang.job_names import parse_job_id
from lavad.core.lang.ranges import Ranges
from lavad.core.site.rights import why_not_control
from lavad.queries.facts import jobfacts, reasons
from lavad.queries.facts.jobset import JobSet
from lavad.queries.frame import columns
from lavad.queries.frame.request import Options, Request, Shown, as_is, err, leave, out
from lavad.queries.jobs import bjobs_counts, bjobs_custom, bjobs_filters, bjobs_long, bjobs_rows
from lavad.store.asked import Find

_NO_JSON = ("l", "UF", "A", "aps", "prio", "sum", "psum", "pei", "script", "env")
"""What shows something else than rows of fields."""
_NOTHING = {"d": "finished", "p": "pending", "s": "suspended", "r": "running"}


def show(request: Request) -> Iterator[Shown]:
    options = request.options()
    columns.refuse_json_with(options, *_NO_JSON)
    given = take_format(request, options)
    if options.any("script", "env"):
        yield from _show_submitted(request, options, bjobs_filters.read_ids(request.words))
        return
    wanted = bjobs_filters.read_wanted(request, options)
    if "A" in options:
        yield from bjobs_counts.show_arrays(request, options, wanted)
        return
    jobs = JobSet(request.view, wanted, request.now)
    pieces = jobs.pieces()
    if options.any("Jd", "hostfile"):
        pieces = iter((bjobs_filters.by_text(request, options, chain.from_iterable(pieces)),))
    if "pei" in options:
        yield from _divided(request, options, pieces, given)
        return
    some = _begun(pieces)
    missing = [word for word, known in _known(request, jobs).items() if not known]
    form = choose_format(request, options, given)
    if form.json:
        yield from bjobs_custom.show_json(request, form, chain.from_iterable(some or ()), missing)
    elif some is not None:
        yield from _shown(request, form, some)
    yield from _leave(options, some is not None, missing, form.json, request.view.params.lsb_bjobs_consistent_exit_code)


def _begun(pieces: Iterator[Iterable[Job]]) -> Iterator[Iterable[Job]] | None:
    """The same jobs; None: there is none."""
    for piece in pieces:
        jobs = iter(piece)
        first = next(jobs, None)
        if first is not None:
            return chain((chain((first,), jobs) if jobs is piece else piece,), pieces)
    return None


def _shown(request: Request, form: bjobs_rows.Form, pieces: Iterator[Iterable[Job]]) -> Iterator[Shown]:
    if form.show is None:
        return bjobs_rows.show(request, form, pieces)
    return form.show(request, form, chain.from_iterable(pieces))


def _divided(request: Request, options: Options, pieces: Iterator[Iterable[Job]], given: str | None) -> Iterator[Shown]:
    """-pei: the waiting jobs that could start if there were room, then those that wait for something else."""
    form = choose_format(request, options, given)
    waiting = list(chain.from_iterable(pieces))
    for title, wanted in (("ELIGIBLE", True), ("INELIGIBLE", False)):
        some = [job for job in waiting if reasons.is_eligible(request.view, job) is wanted]
        yield out(f"{'' if wanted else chr(10)}{title} PENDING JOBS: {len(some)}\n")
        if some:
            yield from _shown(request, form, iter((some,)))


def _leave(options: Options, found: bool, missing: list[str], told: bool, consistent: bool) -> Iterator[Shown]:
    """Errors for what was not found, and the exit status (nothing found is no failure).

    ``told``: JSON has said it (JOBS is 0, ERROR for an id). Tools read both streams as one, which must stay JSON.
    """
    for word in () if told else missing:
        yield err(f"Job <{word}> is not found")
    if missing and (not found or consistent):
        yield leave(255)
    elif not found:
        if options.text("J"):
            yield err(f"Job <{options.text('J')}> is not found")
            yield leave(255)
        elif not told:
            yield err(f"No {_kind(options)}job found")


def _kind(options: Options) -> str:
    if "a" in options:
        return ""
    kinds = [word for letter, word in _NOTHING.items() if bjobs_filters.has_state_option(options, letter)]
    return f"{kinds[0]} " if len(kinds) == 1 else "" if kinds else "unfinished "


def _known(request: Request, jobs: JobSet) -> dict[str, bool]:
    """Each id as given, and whether there is such a job."""
    known: dict[str, bool] = {}
    for word in request.words:
        job, indices = parse_job_id(word)
        if job:
            known[word] = jobs.exists(job, indices)
    return known


def take_format(request: Request, options: Options) -> str | None:
    """The format of -o. Tools write ``-o -json "jobid stat"``: then it is the one argument that is no job id."""
    given = options.find("o")
    if given is None and "o" in options:
        loose = [word for word in request.words if not word[:1].isdigit()]
        if len(loose) == 1:
            given = loose[0]
            request.words.remove(given)
    return given


def choose_format(request: Request, options: Options, given: str | None) -> bjobs_rows.Form:
    """The format that the options ask for; raises Refused where they contradict each other."""
    view = request.view
    form = bjobs_rows.Form(options=options, header="noheader" not in options, hms="hms" in options)
    form.level = pend_level(options, view.params.lsb_bjobs_pendreason_level)
    form.factor = jobfacts.asked_cpu_factor(request, options)
    if options.any("l", "UF"):
        form.show = bjobs_long.show
        return form
    for name, shown in (
        ("aps", bjobs_rows.show_priorities),
        ("prio", bjobs_rows.show_priorities),
        ("sum", bjobs_counts.show_sum),
        ("psum", bjobs_counts.show_reasons),
    ):
        if name in options:
            form.show = shown
            return form
    for default in (options.text("LSB_BJOBS_FORMAT"), view.lsf.get("LSB_BJOBS_FORMAT", ""), view.params.lsb_bjobs_format):
        if given is None and default.strip() and not options.any("w", "W", "WL", "WP", "WF"):
            given = default
    if given is not None or options.any("json", "hms", "o"):
        form.custom = columns.parse("bjobs", bjobs_custom.DEFAULT if given is None else given, bjobs_custom.FIELDS)
        form.json = "json" in options
        form.show = bjobs_custom.show
    return form


def pend_level(options: Options, default: int) -> int | None:
    """The level of pend reasons to show, None: none."""
    for level in range(4):
        if f"p{level}" in options or options.find("p") == str(level):
            return level
    return default if options.any("p", "pe", "pi", "pei") else None


def _show_submitted(request: Request, options: Options, ids: dict[int, Ranges | None] | None) -> Iterator[Shown]:
    """-script and -env: what each job named was submitted with. Only for its owner and administrators."""
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
        if why := why_not_control(request.cluster.conf, spec, request.caller):
            yield err(f"Job <{job}>: {why}")
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
