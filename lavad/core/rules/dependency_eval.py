"""Whether a dependency condition is met by the jobs that it names, live or ended, as a whole or element by element."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.depend import Depend, Ended, Jobs, are_many
from lavad.core.job.job import Array, Job
from lavad.core.lang import dependency
from lavad.core.lang.dependency import Answer, JobCounts, JobRef, Question, Tree
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import JobState
from lavad.core.lang.text_cache import text_cache
from lavad.core.lang.windows import Local, is_open, parse_windows

FAILING = frozenset({"done", "exit", "post_done", "post_err", *dependency.COUNTERS})
"""Questions that a job may come to be unable to answer with yes."""
AskMany = Callable[[Question, Jobs], Answer]


class Look:
    """Answers of single jobs to questions, each worked out once while nothing changes."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Question, dict[int, Answer]] = {}

    def of(self, question: Question) -> Callable[[int], Answer]:
        """What single jobs answer."""
        cluster = self._cluster
        # whatever name the jobs were found by
        known = self._known.setdefault(replace(question, ref=JobRef(indices=question.ref.indices)), {})

        def one(job: int) -> Answer:
            if job not in known:
                known[job] = dependency.judge(question, [counts_of(cluster, question, job)])
            return known[job]

        return one


class SetAnswer:
    """The answer to one question about many jobs, as kept up to date from one change to the next.

    Two jobs stand for all, so that it costs the same for any number of jobs, and nothing where no job changes.
    """

    __slots__ = ("failed", "jobs", "open", "question")

    def __init__(self, look: Look, question: Question, jobs: Ranges) -> None:
        self.question = question
        self.jobs = jobs
        self.failed = 0
        """One of the jobs that can never satisfy the question; 0: there is none."""
        self.open = jobs.max()
        """A job above which all satisfy it; 0: all of them do."""
        one = look.of(question)
        self._find_failed(one)
        self._close(one)

    @property
    def answer(self) -> Answer:
        """As ``judge`` of all jobs."""
        return None if self.failed else not self.open

    def update(self, look: Look, changed: Iterable[int]) -> bool:
        """These of the jobs have changed; whether the answer has."""
        before, again, one = self.answer, False, look.of(self.question)
        for job in changed:
            now = one(job)
            if now is None:
                self.failed = job
            elif job == self.failed:
                again = True
            if now is not True and job > self.open:
                self.open = job
        if again:
            self._find_failed(one)
        self._close(one)
        return self.answer is not before

    def _find_failed(self, one: Callable[[int], Answer]) -> None:
        jobs = self.jobs if self.question.function in FAILING else ()
        self.failed = next((job for job in jobs if one(job) is None), 0)

    def _close(self, one: Callable[[int], Answer]) -> None:
        while self.open and one(self.open) is True:
            self.open = self.jobs.below(self.open)


@text_cache
def read(text: str) -> tuple[Tree | Question, dict[Question, int]]:
    """A condition's tree, and the number of each of its questions."""
    tree = dependency.parse(text)
    numbers: dict[Question, int] = {}
    for number, question in enumerate(dependency.questions_of(tree)):
        numbers.setdefault(question, number)
    return tree, numbers


def by_element(depend: Depend) -> bool:
    """Whether elements wait for elements (``[*]``)."""
    return "*" in depend.text and any(question.ref.same_index for question in read(depend.text)[1])


def evaluate(cluster: Cluster, depend: Depend, local: Local, ask_many: AskMany | None = None) -> Answer:
    """Whether a condition is met now; None: it never can be. ``ask_many`` answers questions about many jobs (``are_many``)."""
    tree, numbers = read(depend.text)

    def lookup(question: Question) -> Answer:
        jobs = () if question.function == "time" else depend.ids[numbers[question]]
        if ask_many is not None and are_many(jobs):
            return ask_many(question, jobs)
        return answer_of(cluster, question, jobs, local)

    return dependency.evaluate(tree, lookup)


def counts_of(cluster: Cluster, question: Question, job: int) -> JobCounts:
    """The elements of one named job by state. Post-processing has ended with the job."""
    only = question.ref.indices
    ended = cluster.ended.rows.get(job) or Ended()
    plain = cluster.jobs.rows.get(job)
    if plain is not None:
        return _with_live(JobCounts(messages=_texts(plain)), [plain])
    array = cluster.arrays.rows.get(job)
    if array is None:
        return of_ended(ended, only)
    wanted = array.indices if only is None else array.indices.intersect(only)
    keys = cluster.elements.get(job, {})
    if only is None:
        done, exited = array.done, array.exited
        live = [cluster.jobs.rows[key] for key in keys] if _asks_states(question) else []
    else:
        done, exited = len(ended.done.intersect(only)), len(ended.exits.intersect(only))
        live = [cluster.jobs.rows[key] for key in keys if key >> 32 in only]
    failed = len(ended.post_failed if only is None else ended.post_failed.intersect(only))
    pend, hold = (len(part if only is None else part.intersect(only)) for part in (array.pending, array.held))
    known = JobCounts(
        pend=pend,
        hold=hold,
        done=done,
        exit=exited,
        exit_codes=_codes(ended, only),
        post_done=done + exited - failed,
        post_err=failed,
        messages=_texts(array),
    )
    if only is None and not live:
        return _padded(known, len(wanted))
    return _with_live(known, live)


def _asks_states(question: Question) -> bool:
    return question.function in ("started", "numrun", "numstart", "numpend", "numhold")


def _padded(counts: JobCounts, total: int) -> JobCounts:
    """Elements that are not looked at one by one count as started."""
    return replace(counts, start=total - counts.total)


def _with_live(counts: JobCounts, live: list[Job]) -> JobCounts:
    pend = sum(job.state in (JobState.PEND, JobState.WAIT) for job in live)
    hold = sum(job.state is JobState.PSUSP for job in live)
    run = sum(job.state in (JobState.RUN, JobState.UNKWN, JobState.ZOMBI) for job in live)
    return replace(counts, pend=counts.pend + pend, hold=counts.hold + hold, run=run, start=len(live) - pend - hold)


def of_ended(ended: Ended, only: Ranges | None) -> JobCounts:
    """The elements by state of a job that is over. ``only``: those that are asked about."""
    done = ended.done if only is None else ended.done.intersect(only)
    exited = ended.exits if only is None else ended.exits.intersect(only)
    failed = len(ended.post_failed if only is None else ended.post_failed.intersect(only))
    counts = ended.totals if only is None and ended.totals is not None else (len(done), len(exited))
    return JobCounts(
        done=counts[0],
        exit=counts[1],
        exit_codes=_codes(ended, only),
        post_done=sum(counts) - failed,
        post_err=failed,
    )


def _codes(ended: Ended, only: Ranges | None) -> tuple[int, ...]:
    return tuple(code for code, elements in ended.exited if only is None or elements.intersect(only))


def _texts(row: Job | Array) -> tuple[str, ...]:
    return tuple(message.text for message in row.messages)


def elements_met(cluster: Cluster, depend: Depend, wanted: Ranges, local: Local) -> tuple[Ranges, Ranges]:
    """-> (elements whose condition is met, elements whose condition can never be)."""
    tree, numbers = read(depend.text)

    def ask(question: Question) -> tuple[Ranges, Ranges]:
        jobs = () if question.function == "time" else depend.ids[numbers[question]]
        if not question.ref.same_index:
            answer = answer_of(cluster, question, jobs, local)
            return (wanted if answer else EMPTY), (wanted if answer is None else EMPTY)
        met, never = wanted, EMPTY
        for job in jobs:
            ok, bad = _elements_of(cluster, question, job)
            met, never = met.intersect(ok), never.union(bad.intersect(wanted))
        return met, never

    return _fold(tree, ask, wanted)


def answer_of(cluster: Cluster, question: Question, jobs: Jobs, local: Local) -> Answer:
    """One question about these jobs."""
    if question.function == "time":
        return is_open(parse_windows(question.text), local)
    counts = (counts_of(cluster, question, job) for job in jobs)
    if jobs and question.function not in FAILING:
        return all(dependency.judge(question, [one]) for one in counts)
    return dependency.judge(question, list(counts))


def _fold(tree: Tree | Question, ask: Callable[[Question], tuple[Ranges, Ranges]], wanted: Ranges) -> tuple[Ranges, Ranges]:
    if isinstance(tree, Question):
        return ask(tree)
    parts = [_fold(branch, ask, wanted) for branch in tree[1:]]
    met, never = parts[0]
    if tree[0] == "not":
        return wanted.minus(met), EMPTY
    for also, bad in parts[1:]:
        if tree[0] == "and":
            met, never = met.intersect(also), never.union(bad)
        else:
            met, never = met.union(also), never.intersect(bad)
    return met, never.minus(met)


def _elements_of(cluster: Cluster, question: Question, job: int) -> tuple[Ranges, Ranges]:
    """-> (elements of a named array of which the question is true, those of which it can never be)."""
    array = cluster.arrays.rows.get(job)
    ended = cluster.ended.rows.get(job) or Ended()
    done, exits = ended.done, ended.exits
    match question.function:
        case "done":
            return done, exits
        case "ended":
            return done.union(exits), EMPTY
        case "post_done":
            return done.union(exits).minus(ended.post_failed), ended.post_failed
        case "post_err":
            return ended.post_failed, done.union(exits).minus(ended.post_failed)
        case "exit":
            fits = EMPTY
            for code, elements in ended.exited:
                if not question.op or dependency.compare(code, question.op, question.number or 0):
                    fits = fits.union(elements)
            return fits, done.union(exits.minus(fits))
        case "started":
            return _started(cluster, array, done.union(exits)), EMPTY
    return EMPTY, EMPTY


def _started(cluster: Cluster, array: Array | None, ended: Ranges) -> Ranges:
    if array is None:
        return ended
    rows = cluster.jobs.rows
    running = (
        key >> 32
        for key in cluster.elements.get(array.job, ())
        if rows[key].run is not None and rows[key].state is not JobState.WAIT
    )
    return ended.union(Ranges.from_indices(running))
