"""Which jobs the options and ids of bjobs, bhist and bstatus mean.

Rule: a test sees one job; what needs the text of the store goes batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from lavad.core.job.groups import read_path
from lavad.core.job.job import Job
from lavad.core.lang import job_names
from lavad.core.lang.asks import Refused
from lavad.core.lang.job_names import ArrayError, Wildcard, parse_job_ids
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.resreq.text import ResReq, ResReqError, Rusage, parse
from lavad.core.lang.states import FINAL, WAITING, JobState
from lavad.core.site.rights import NamedUsers
from lavad.queries.facts import queuefacts, reasons, slot_reservations, visibility
from lavad.queries.facts.jobset import STOPPED, UNFINISHED, Test, Wanted
from lavad.queries.frame.request import Options, Request

STATES = {
    "d": FINAL,
    "p": WAITING,
    "s": STOPPED,
    "r": frozenset({JobState.RUN, JobState.UNKWN, JobState.ZOMBI}),
}
_PENDING = ("p0", "p1", "p2", "p3", "pe", "pi", "pei", "plan", "psum", "prio")
"""Options that are about waiting jobs, as -p is."""

_BATCH = 500
_OF_NONE = ("fwd", "Lp", "data", "ss")
"""Forwarded to another cluster, of a licence project, with data to stage, of session schedulers: none is."""


def has_state_option(options: Options, letter: str) -> bool:
    """Whether the option of these states, or one that means the same, is given."""
    return letter in options or (letter == "p" and options.any(*_PENDING))


def read_ids(words: list[str]) -> dict[int, Ranges | None] | None:
    """Job ids with their indices; None where there is none, or 0 among them."""
    found: dict[int, Ranges | None] = {}
    try:
        ids = list(parse_job_ids(words))
    except ArrayError as error:
        raise Refused(f"{error}.") from None
    for _, job, indices in ids:
        if job == 0:
            return None
        if job in found:
            before = found[job]
            found[job] = None if before is None or indices is None else before.union(indices)
        else:
            found[job] = indices
    return found or None


def read_wanted(request: Request, options: Options) -> Wanted:
    """What the options and ids ask for; raises Refused for names that do not exist."""
    ids = read_ids(request.words)
    asked = [states for letter, states in STATES.items() if has_state_option(options, letter)]
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
        spec_test=_seen(request, options, _spec_test(request, options)),
        job_test=_job_test(request, options),
    )


def _seen(request: Request, options: Options, test: Callable[[int], bool] | None) -> Callable[[int], bool] | None:
    """``test``, and that the caller may see the jobs as the options show them."""
    command = request.query.command
    if command == "bhist" and not visibility.history_is_restricted(request):
        return test
    detail = options.any("l", "UF") or options.any(*(("b",) if command == "bhist" else ("N",)))
    return visibility.tested(request, detail or command == "bread", test)


def _users(request: Request, options: Options, by_id: bool) -> frozenset[str] | None:
    given = options.words("u")
    if "all" in given:
        return None
    if not given:
        return None if by_id or "G" in options else frozenset({request.caller.user})
    return NamedUsers(request.cluster.conf, given).listed


def _named(request: Request, options: Options) -> NamedUsers | None:
    """Users that only a test of each spec can tell: everybody but some."""
    given = options.words("u")
    named = NamedUsers(request.cluster.conf, given)
    return named if "all" not in given and named.listed is None else None


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
    group, service, users = options.text("g"), options.text("sla"), _named(request, options)
    if service and all(one.name != service for one in view.cluster.conf.service_classes):
        raise Refused(f"{service}: No such service class")
    if not wanted and not group and not service and users is None:
        return None

    def test(number: int) -> bool:
        spec = view.spec(Job(key=0, spec=number, name="", submitted=0.0))
        fits = all(getattr(spec, field) == value for field, value in wanted.items()) and _in_group(spec.group, group)
        fits = fits and (users is None or spec.user in users)
        return fits and (not service or view.service_classes.of(spec) == service)

    return test


def _in_group(own: str, asked: str) -> bool:
    """``/a/b`` is the group itself, ``/a/b/`` with those below it."""
    if not asked:
        return True
    path = read_path(asked) or "/"
    return own == path or (asked.endswith("/") and (own + "/").startswith(path.rstrip("/") + "/") and bool(own))


def _job_test(request: Request, options: Options) -> Test | None:
    tests: list[Test] = []
    if "J" in options:
        tests.append(name_test(options.text("J")))
    if "m" in options:
        hosts = _hosts(request, options.words("m"))
        tests.append(lambda job: job.run is not None and any(part.host in hosts for part in job.run.parts))
    tests += _more_tests(request, options)
    if not tests:
        return None
    return tests[0] if len(tests) == 1 else lambda job: all(test(job) for test in tests)


def name_test(text: str) -> Test:
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
        hosts = known if word in ("all", conf.cluster) else conf.groups_of_hosts.hosts(word)
        found.update(known if "all" in hosts else hosts)
    return frozenset(found)


def _more_tests(request: Request, options: Options) -> Iterator[Test]:
    """-pe, -pi, -plan, -x, -rusage, and options that fit no job."""
    view, now = request.view, request.now
    if ("pe" in options) != ("pi" in options):
        wanted = "pe" in options
        yield lambda job: job.state in WAITING and reasons.is_eligible(view, job) is wanted
    if "plan" in options:
        yield lambda job: slot_reservations.find(view, job) is not None
    if "x" in options:
        yield lambda job: bool(queuefacts.job_exceptions(job, view, now))
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
    description = Wildcard(options.text("Jd") if "Jd" in options else "*")
    while batch := list(islice(jobs, _BATCH)):
        texts = request.view.texts(batch)
        for job in batch:
            text = texts[job.key]
            if description.fits(text.description) and (text.host_file or "hostfile" not in options):
                yield job
