"""bjobs: which jobs (options, ids), then one of its formats. Unknown ids exit 255 only where no job at all is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.job.groups import read_path
from lavad.core.job.job import Job
from lavad.core.lang import job_names
from lavad.core.lang.arrays import ArrayError, parse_job_id
from lavad.core.lang.asks import Refused
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import FINAL, WAITING, JobState
from lavad.core.site.host_names import members
from lavad.core.site.rights import expand_users
from lavad.queries.facts import jobfacts, reasons
from lavad.queries.facts.jobset import UNFINISHED, JobSet, Wanted
from lavad.queries.frame import columns
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, err, leave, out
from lavad.queries.jobs import bjobs_aps, bjobs_array, bjobs_custom, bjobs_filters, bjobs_long, bjobs_rows, bjobs_sum, bjobs_text

SUSPENDED = frozenset({JobState.PSUSP, JobState.SSUSP, JobState.USUSP})
_STATES = {
    "d": FINAL,
    "p": WAITING,
    "s": SUSPENDED,
    "r": frozenset({JobState.RUN, JobState.UNKWN, JobState.ZOMBI}),
}
_PENDING = ("p0", "p1", "p2", "p3", "pe", "pi", "pei", "plan", "psum", "prio")
"""Options that are about waiting jobs, as -p is."""
_NOTHING = {"d": "finished", "p": "pending", "s": "suspended", "r": "running"}


def show(request: Request) -> Iterator[Shown]:
    """The pieces of a listing."""
    options = request.options()
    given = take_format(request, options)
    if options.any("script", "env"):
        yield from bjobs_text.show(request, options, read_ids(request.words))
        return
    wanted = read_wanted(request, options)
    if "A" in options:
        yield from bjobs_array.show(request, options, wanted)
        return
    jobs = JobSet(request.view, wanted, request.now - request.view.params.clean_period)
    rows = iter(jobs)
    if options.any("Jd", "hostfile"):
        rows = bjobs_filters.by_text(request, options, rows)
    if "pei" in options:
        yield from _divided(request, options, rows, given)
        return
    first = next(rows, None)
    missing = [word for word, known in _known(request, jobs).items() if not known]
    form = choose_format(request, options, given)
    if form.json:
        yield from bjobs_custom.show_json(request, form, _with_first(first, rows), missing)
    elif first is not None:
        yield from form.show(request, form, _with_first(first, rows))
    yield from _leave(options, first is not None, missing, form.json, request.view.params.lsb_bjobs_consistent_exit_code)


def _divided(request: Request, options: Options, rows: Iterator[Job], given: str | None) -> Iterator[Shown]:
    """-pei: the waiting jobs that could start if there were room, then those that wait for something else."""
    form = choose_format(request, options, given)
    waiting = list(rows)
    for title, wanted in (("ELIGIBLE", True), ("INELIGIBLE", False)):
        some = [job for job in waiting if reasons.is_eligible(request.view, job) is wanted]
        yield out(f"{'' if wanted else chr(10)}{title} PENDING JOBS: {len(some)}\n")
        if some:
            yield from form.show(request, form, iter(some))


def _with_first(first: Job | None, rest: Iterator[Job]) -> Iterator[Job]:
    if first is not None:
        yield first
        yield from rest


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
    kinds = [word for letter, word in _NOTHING.items() if _has(options, letter)]
    return f"{kinds[0]} " if len(kinds) == 1 else "" if kinds else "unfinished "


def _has(options: Options, letter: str) -> bool:
    return letter in options or (letter == "p" and options.any(*_PENDING))


def read_ids(words: list[str]) -> dict[int, Ranges | None] | None:
    """Job ids with their indices; None where there is none, or 0 among them."""
    found: dict[int, Ranges | None] = {}
    for word in words:
        try:
            job, indices = parse_job_id(word)
        except ArrayError as error:
            raise Refused(f"{error}.") from None
        if job == 0:
            return None
        if job in found:
            before = found[job]
            found[job] = None if before is None or indices is None else before.union(indices)
        else:
            found[job] = indices
    return found or None


def _known(request: Request, jobs: JobSet) -> dict[str, bool]:
    """Each id as given, and whether there is such a job."""
    known: dict[str, bool] = {}
    for word in request.words:
        job, indices = parse_job_id(word)
        if job:
            known[word] = jobs.exists(job, indices)
    return known


def read_wanted(request: Request, options: Options) -> Wanted:
    """What the options and ids ask for; raises Refused for names that do not exist."""
    ids = read_ids(request.words)
    asked = [states for letter, states in _STATES.items() if _has(options, letter)]
    if "a" in options or (ids is not None and not asked):
        states = UNFINISHED | FINAL
    elif asked or "N" in options:
        states = frozenset().union(*asked, FINAL if "N" in options else ())
    else:
        states = UNFINISHED
    if "sum" in options:
        states = states - FINAL
    if "psum" in options:
        states = WAITING
    return Wanted(
        states=states,
        users=_users(request, options, ids is not None),
        ids=ids,
        spec_test=_spec_test(request, options),
        job_test=_job_test(request, options),
    )


def _users(request: Request, options: Options, by_id: bool) -> frozenset[str] | None:
    given = options.words("u")
    if "all" in given:
        return None
    if not given:
        return None if by_id or "G" in options else frozenset({request.caller.user})
    return expand_users(request.cluster.conf, given)


def _spec_test(request: Request, options: Options) -> Callable[[int], bool] | None:
    view = request.view
    queue = options.text("q")
    if queue and queue not in view.cluster.queue_conf:
        raise Refused(f"{queue}: No such queue")
    wanted = {
        field: value
        for field, value in (
            ("queue", queue),
            ("project", options.text("P")),
            ("app", options.text("app")),
            ("user_group", options.text("G")),
            ("reservation", options.text("U")),
        )
        if value
    }
    group = options.text("g")
    if not wanted and not group:
        return None

    def test(number: int) -> bool:
        spec = view.spec(Job(key=0, spec=number, name="", submitted=0.0))
        return all(getattr(spec, field) == value for field, value in wanted.items()) and _in_group(spec.group, group)

    return test


def _in_group(own: str, asked: str) -> bool:
    """``/a/b`` is the group itself, ``/a/b/`` with those below it."""
    if not asked:
        return True
    path = read_path(asked) or "/"
    return own == path or (asked.endswith("/") and (own + "/").startswith(path.rstrip("/") + "/") and bool(own))


def _job_test(request: Request, options: Options) -> Callable[[Job], bool] | None:
    tests: list[Callable[[Job], bool]] = []
    if "J" in options:
        tests.append(name_test(options.text("J")))
    if "m" in options:
        hosts = _hosts(request, options.words("m"))
        tests.append(lambda job: job.run is not None and any(part.host in hosts for part in job.run.parts))
    tests += bjobs_filters.job_tests(request, options)
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda job: all(test(job) for test in tests)


def name_test(text: str) -> Callable[[Job], bool]:
    """A test for ``-J``."""
    names = job_names.pattern(text)
    return lambda job: names.fits(job.key, job.name)


def _hosts(request: Request, words: list[str]) -> frozenset[str]:
    conf = request.cluster.conf
    known = {*request.cluster.hosts.rows, *request.cluster.host_conf, *(name for name, _ in conf.host_groups)}
    found: set[str] = set()
    for word in words:
        if word not in known and word != "all":
            raise Refused(f"{word}: Bad host name, host group name or cluster name")
        hosts = known if word in ("all", conf.cluster) else members(conf, word)
        found.update(known if "all" in hosts else hosts)
    return frozenset(found)


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
    form.factor = cpu_factor(request, options)
    if options.any("l", "UF"):
        form.show = bjobs_long.show
        return form
    for name, shown in (
        ("aps", bjobs_aps.show),
        ("prio", bjobs_aps.show),
        ("sum", bjobs_sum.show),
        ("psum", bjobs_sum.show_reasons),
    ):
        if name in options:
            form.show = shown
            return form
    for default in (options.text("LSB_BJOBS_FORMAT"), view.lsf.get("LSB_BJOBS_FORMAT", ""), view.params.lsb_bjobs_format):
        if given is None and default.strip() and not options.any("w", "W", "WL", "WP", "WF"):
            given = default
    if "json" in options and "noheader" in options:
        raise Refused("bjobs: -json and -noheader cannot be used together")
    if given is not None or options.any("json", "hms", "o"):
        form.custom = columns.parse("bjobs", bjobs_custom.DEFAULT if given is None else given, bjobs_custom.FIELDS)
        form.json = "json" in options
        form.show = bjobs_custom.show
        return form
    form.show = bjobs_rows.show
    return form


def pend_level(options: Options, default: int) -> int | None:
    """The level of pend reasons to show, None: none."""
    for level in range(4):
        if f"p{level}" in options or options.find("p") == str(level):
            return level
    return default if options.any("p", "pe", "pi", "pei") else None


def cpu_factor(request: Request, options: Options) -> float:
    """What -N multiplies CPU times by: a factor, or that of a host or model."""
    given = options.text("N")
    if not given:
        return 1.0
    try:
        return float(given)
    except ValueError:
        pass
    if given not in dict(request.cluster.conf.models) and given not in request.cluster.hosts.rows:
        raise Refused(f"{given}: Bad host specification")
    return jobfacts.cpu_factor(request.view, given)
