"""bacct: finished jobs summed up, and with -l or -b each of them. The database sums; jobs come page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.cluster.charge import gpus_with_attempt
from lavad.core.job import checkpoints as job_checkpoints
from lavad.core.job import gpu_use
from lavad.core.job.job import Job
from lavad.core.job.run_time import run_time, start_of
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, keys_named
from lavad.core.lang.states import JobState, TermReason
from lavad.core.site.rights import NamedUsers
from lavad.queries.facts import checkpoints, gpu_usage, jobfacts, lsf_log, paragraphs, queuefacts, resources, visibility
from lavad.queries.facts.history import gone_since
from lavad.queries.frame import formats
from lavad.queries.frame.formats import RULE, wrap
from lavad.queries.frame.request import Options, Request, Shown, out, read_period
from lavad.queries.jobs import bjobs_long
from lavad.store.asked import Asked, Sums

BRIEF = "U/UID     QUEUE      SUBMIT_TIME   CPU_T     WAIT  TURNAROUND  FROM       EXEC_ON    JOB_NAME\n"


def show(request: Request) -> Iterator[Shown]:
    """The head, the jobs if asked for, and the sums."""
    options = request.options()
    request, log = lsf_log.opened(request, options)
    report = _Report(request, options, log is not None)
    yield out("".join(report.head()))
    if options.any("l", "UF"):
        yield from report.each(report.long)
    elif "b" in options:
        yield out(BRIEF)
        yield from report.each(report.brief)
        yield out(RULE)
    sums = report.sums()
    yield out(report.summary(sums))
    if not sums.done + sums.exited:
        yield from gone_since(request, report.keys)


class _Report:
    def __init__(self, request: Request, options: Options, one_by_one: bool = False) -> None:
        self.request = request
        self.view = request.view
        self.options = options
        self.plain = "UF" in options
        self.factor = jobfacts.asked_cpu_factor(request, options)
        self.keys = _keys(request.words)
        self.windows = {letter: read_period(request, options.text(letter)) for letter in "CSD" if letter in options}
        self.named: NamedUsers | None = None
        """Everybody but some, whom the store cannot be asked for."""
        self.users = self._users()
        self.asked = self._asked()
        self.test = self._spec_test() or ((lambda job: True) if one_by_one else None)

    def _users(self) -> tuple[str, ...]:
        given = self.options.words("u")
        if "all" in given or (self.keys and not given):
            return ()
        if not given:
            return (self.request.caller.user,)
        named = NamedUsers(self.request.cluster.conf, given)
        if named.listed is None:
            self.named = named
        return tuple(sorted(named.listed or given))

    def _asked(self) -> Asked:
        options, conf = self.options, self.request.cluster.conf
        queues = options.words("q")
        for queue in queues:
            if queue not in self.request.cluster.queue_conf:
                raise Refused(f"{queue}: No such queue")
        given = options.words("m")
        for word in given:
            if not self._is_host(word):
                raise Refused(f"{word}: Bad host name, host group name or cluster name")
        named = [host for word in given for host in conf.groups_of_hosts.hosts(word) or (word,)]
        hosts = () if not {"all", conf.cluster}.isdisjoint(named) else tuple(dict.fromkeys(named))
        states: tuple[JobState, ...] = ()
        if ("d" in options) != ("e" in options):
            states = (JobState.DONE,) if "d" in options else (JobState.EXIT,)
        windows = self.windows
        return Asked(
            users=() if self.named is not None else self.users,
            queues=tuple(queues),
            projects=tuple(options.words("P")),
            hosts=hosts,
            keys=self.keys,
            names=tuple(options.words("J")),
            states=states,
            completed=windows.get("C"),
            submitted=windows.get("S"),
            dispatched=windows.get("D"),
        )

    def _is_host(self, word: str) -> bool:
        """Whether the cluster has a host or group of that name, or jobs have ended on such a host, be it gone since."""
        cluster = self.request.cluster
        known = (
            word in ("all", cluster.conf.cluster)
            or word in cluster.hosts.rows
            or word in cluster.host_conf
            or word in cluster.conf.groups_of_hosts.members
        )
        return known or any(self.view.reader.pages(Asked(hosts=(word,))))

    def _spec_test(self) -> Callable[[Job], bool] | None:
        """A test for what the store has no column for; None: the options ask for nothing of the kind."""
        pairs = (("app", "app"), ("user_group", "G"), ("group", "g"), ("reservation", "U"))
        wanted = {field: self.options.words(option) for field, option in pairs if option in self.options}
        now, exceptional = self.request.now, "x" in self.options
        anybody = wanted.get("reservation") == ["all"]
        if anybody:
            del wanted["reservation"]
        services, classes = self.options.words("sla"), self.view.service_classes
        none = "Lp" in self.options
        restricted = visibility.history_is_restricted(self.request)
        named = self.named
        if not (wanted or exceptional or anybody or services or none or restricted or named is not None):
            return None
        detail = self.options.any("l", "UF")

        def test(job: Job) -> bool:
            spec = self.view.spec(job)
            if restricted and not visibility.sees(self.request, spec, detail):
                return False
            fits = not none and all(getattr(spec, field) in values for field, values in wanted.items())
            fits = fits and (named is None or spec.user in named)
            fits = fits and (bool(spec.reservation) or not anybody) and (not services or classes.of(spec) in services)
            return fits and (not exceptional or bool(queuefacts.job_exceptions(job, self.view, now)))

        return test

    def jobs(self) -> Iterator[list[Job]]:
        """The jobs that pass the test, page by page."""
        for page in self.view.reader.pages(self.asked):
            self.view.load_specs(page)
            kept = page if self.test is None else [job for job in page if self.test(job)]
            if kept:
                yield kept

    def head(self) -> Iterator[str]:
        options = self.options
        yield "\nAccounting information about jobs that are: \n"
        yield _about("submitted by", "users", self.users, "submitted by all users.")
        yield _about("accounted on", "projects", options.words("P"), "accounted on all projects.")
        ended = {(True, False): "completed normally", (False, True): "exited"}
        yield f"  - {ended.get(('d' in options, 'e' in options), 'completed normally or exited')}\n"
        for letter, verb in (("C", "completed"), ("S", "submitted"), ("D", "dispatched")):
            if letter in self.windows:
                begin, end = self.windows[letter]
                yield f"  - {verb} between  {formats.time_with_year(begin)}\n"
                yield f"                  ,and   {formats.time_with_year(end)}\n"
        yield _about("executed on", "hosts", options.words("m"), "executed on all hosts.")
        yield _about("submitted to", "queues", options.words("q"), "submitted to all queues.")
        if "app" in options:
            yield _about("submitted to", "application profiles", options.words("app"), "")
        yield _about("accounted on", "service classes", options.words("sla"), "accounted on all service classes.")
        yield RULE

    def each(self, one: Callable[[Job, JobText], str]) -> Iterator[Shown]:
        """Every job as ``one`` shows it."""
        for page in self.jobs():
            texts = self.view.texts(page)
            yield out("".join(one(job, texts[job.key]) for job in page))

    def long(self, job: Job, text: JobText) -> str:
        """A record of -l."""
        spec = self.view.spec(job)
        head = bjobs_long.head(job, spec, text, "", self.view.service_classes.of(spec))
        head = head.replace(", Command <", f", Status <{job.state.name}>, Queue <{spec.queue}>, Command <", 1)
        options = paragraphs.submission(self.view, spec, text, job.depend)
        lines = ["\n", wrap(head, self.plain)]
        lines.append(wrap(f"{self.view.full_time(job.submitted)}: Submitted from host <{spec.from_host}>{options};", self.plain))
        if job.run is not None:
            lines.append(wrap(f"{self.view.full_time(job.run.dispatched)}: {self._dispatched(job)};", self.plain))
        lines.append(wrap(f"{self.view.full_time(job.since)}: {_completed(job)}", self.plain))
        if "gpu" in self.options:
            lines.append(resources.gpu_allocation(self.view, job))
            lines.append(gpu_usage.table(job, jobfacts.Usage(job, self.view)))
        if "aff" in self.options and (table := resources.job_affinity(self.view, spec, job)):
            lines.append(f"\n{table}")
        if job.checkpoints is not None:
            lines.append(checkpoints.section(job.checkpoints))
        return "".join([*lines, "\nAccounting information about this job:\n", self._figures(job), RULE])

    def _dispatched(self, job: Job) -> str:
        places = paragraphs.places(self.view, job)
        index = job.key >> 32
        verb = f"[{index}] dispatched" if index else "Dispatched"
        if self.view.hpc:
            return f"{verb} {places}, Effective RES_REQ <{resources.effective(self.view, self.view.spec(job), job)} >"
        return f"{verb} to {places.removeprefix('on ')}"

    def _figures(self, job: Job) -> str:
        cpu, wait, turnaround = self._times(job)
        usage = jobfacts.Usage(job, self.view)
        hog = cpu / turnaround if turnaround > 0 else 0.0
        share = jobfacts.Efficiency(job, self.view.spec(job), usage, self.request.now)
        memory = [_size(usage.max_mem), _size(usage.max_swap)]
        state = "done" if job.state is JobState.DONE else "exit"
        return (
            "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n"
            f"{cpu:>10.2f} {wait:>8.0f} {turnaround:>14.0f} {state:>8} {hog:>14.4f} {memory[0]:>6} {memory[1]:>7}\n"
            "     CPU_PEAK     CPU_PEAK_DURATION     CPU_PEAK_EFFICIENCY\n"
            f"{usage.cpu_peak:>13.2f} {usage.cpu_peak_after:>11.0f} second(s) {share.peak:>22.2f}%\n"
            "     CPU_AVERAGE_EFFICIENCY      MEM_EFFICIENCY\n"
            f"{share.cpu:>26.2f}% {share.memory:>18.2f}%\n"
        )

    def _times(self, job: Job) -> tuple[float, int, int]:
        """CPU time, wait and turnaround; whole seconds as LSF counts them."""
        cpu = self.factor * jobfacts.cpu_time(job)
        return cpu, int(start_of(job) or job.since) - int(job.submitted), int(job.since) - int(job.submitted)

    def brief(self, job: Job, text: JobText) -> str:
        """A line of -b."""
        spec = self.view.spec(job)
        cpu, wait, turnaround = self._times(job)
        host = job.run.parts[0].host if job.run is not None else "-"
        wide = "w" in self.options

        def cut(value: str, width: int) -> str:
            return value if wide else value[:width]

        return (
            f"{cut(spec.user, 9):<9} {cut(spec.queue, 10):<10} {formats.short_time(job.submitted):<12} {cpu:>6.2f} {wait:>8} "
            f"{turnaround:>11}  {cut(spec.from_host, 10):<10} {cut(host, 10):<10} {cut(job.name, 20)}"
            f"{f' {show_key(job.key)}' if wide else ''}\n"
        )

    def sums(self) -> Sums:
        """From the database; where the options need a test, from the jobs themselves."""
        if self.test is None:
            return self.view.reader.sums(self.asked)
        return _summed([job for page in self.jobs() for job in page], self._times)

    def summary(self, sums: Sums) -> str:
        factor = self.factor if self.test is None else 1.0
        cpu, hog = (tuple(factor * value for value in values) for values in (sums.cpu, sums.hog))
        wait, turn, run, expansion = sums.wait, sums.turnaround, sums.run, sums.expansion
        text = (
            "\nSUMMARY:      ( time unit: second ) \n"
            f" Total number of done jobs: {sums.done:>7}      Total number of exited jobs: {sums.exited:>5}\n"
            f" Total CPU time consumed: {cpu[0]:>9.1f}      Average CPU time consumed: {cpu[3]:>7.1f}\n"
            f" Maximum CPU time of a job: {cpu[1]:>7.1f}      Minimum CPU time of a job: {cpu[2]:>7.1f}\n"
            f" Total wait time in queues: {wait[0]:>7.1f}\n"
            f" Average wait time in queue: {wait[3]:>6.1f}\n"
            f" Maximum wait time in queue: {wait[1]:>6.1f}      Minimum wait time in queue: {wait[2]:>6.1f}\n"
            f" Average turnaround time: {turn[3]:>9.0f} (seconds/job)\n"
            f" Maximum turnaround time: {turn[1]:>9.0f}      Minimum turnaround time: {turn[2]:>9.0f}\n"
            f" Average hog factor of a job: {hog[3]:>5.2f} ( cpu time / turnaround time )\n"
            f" Maximum hog factor of a job: {hog[1]:>5.2f}      Minimum hog factor of a job: {hog[2]:>5.2f}\n"
            f" Average expansion factor of a job: {expansion[3]:>5.2f} ( turnaround time / run time )\n"
            f" Maximum expansion factor of a job: {expansion[1]:>5.2f}\n"
            f" Minimum expansion factor of a job: {expansion[2]:>5.2f}\n"
            f" Total Run time consumed: {run[0]:>9.0f}      Average Run time consumed: {run[3]:>7.0f}\n"
            f" Maximum Run time of a job: {run[1]:>7.0f}      Minimum Run time of a job: {run[2]:>7.0f}\n"
        )
        gpus = sums.gpus
        if gpus.held:
            text += (
                f" Total GPU time held: {gpus.held:>13.0f}      Total GPU time used: {gpus.used:>11.0f}\n"
                f" Total GPU time idle: {gpus.idle:>13.0f}      GPU Energy Consumed: {gpus.energy:f} Joules\n"
            )
        saved = sums.checkpoints
        if saved.made or saved.cost or saved.restarts:
            text += (
                f" Total number of checkpoints: {saved.made:>5}      Total checkpoint time: {saved.cost:>13.1f}\n"
                f" Total number of restarts: {saved.restarts:>8}      Total work lost in restarts: {saved.lost:>7.1f}\n"
            )
        begin, end = self.windows.get("C", (sums.begin, sums.end))
        count = sums.done + sums.exited
        if count and not self.keys and end > begin:
            hours = (end - begin) / 3600
            text += (
                f" Total throughput: {count / hours:>16.2f} (jobs/hour)  during {hours:>7.2f} hours\n"
                f" Beginning time: {formats.short_time(begin):>18}      Ending time: {formats.short_time(end):>21}\n"
            )
        return text + "\n"


def _keys(words: list[str]) -> tuple[int, ...]:
    try:
        return tuple(keys_named(words))
    except ArrayError as error:
        raise Refused(f"{error}.") from None


def _about(verb: str, what: str, names: tuple[str, ...] | list[str], everything: str) -> str:
    return f"  - {verb} {what} {''.join(f'{name}, ' for name in names)}\n" if names else f"  - {everything}\n"


def _completed(job: Job) -> str:
    if job.state is JobState.DONE:
        return "Completed <done>."
    reason = job.outcome.reason if job.outcome is not None else TermReason.NONE
    return f"Completed <exit>; {jobfacts.term_text(reason)}." if reason is not TermReason.NONE else "Completed <exit>."


def _size(kb: float) -> str:
    if not kb:
        return "-"
    return f"{kb / 1024:.0f}M" if kb < 1024**2 else formats.unit_text(kb, "S")


def _four(values: list[float]) -> tuple[float, ...]:
    return (sum(values), max(values), min(values), sum(values) / len(values)) if values else (0.0,) * 4


def _summed(jobs: list[Job], figures: Callable[[Job], tuple[float, int, int]]) -> Sums:
    rows = [(*figures(job), run_time(job, job.since)) for job in jobs]
    done = sum(job.state is JobState.DONE for job in jobs)
    return Sums(
        done=done,
        exited=len(jobs) - done,
        cpu=_four([row[0] for row in rows]),
        wait=_four([row[1] for row in rows]),
        turnaround=_four([row[2] for row in rows]),
        run=_four([row[3] for row in rows]),
        hog=_four([row[0] / row[2] if row[2] else 0.0 for row in rows]),
        expansion=_four([max(row[2], 1) / max(row[3], 1) for row in rows]),
        begin=min((job.since for job in jobs), default=0.0),
        end=max((job.since for job in jobs), default=0.0),
        gpus=gpu_use.total(gpus_with_attempt(job, job.run, job.since) for job in jobs),
        checkpoints=job_checkpoints.total(job_checkpoints.sums_of(job.checkpoints) for job in jobs),
    )
