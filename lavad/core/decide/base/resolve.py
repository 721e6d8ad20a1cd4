"""Resolves a dependency condition: from its text to job ids and summaries of the jobs that have finished already.

Rule: jobs that are not live are looked up in the store before the decision; ``NeedsLookup`` says what is still missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.select import UNKNOWN
from lavad.core.job.depend import BLOCKED, FEW, MET, NEVER, Depend, Ended, EndedAlike, Jobs, jobs_of
from lavad.core.job.job import Array
from lavad.core.lang import dependency
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.dependency import DependencyError, JobCounts, JobRef, Question, Tree, parse, questions_of
from lavad.core.lang.ranges import Ranges
from lavad.core.rules.dependency_eval import counts_of, of_ended
from lavad.core.site.rights import is_admin

POST = ("post_done", "post_err")
DIFFERENT_SIZE = "Dependent arrays do not have the same size"
ONE = Ranges.span(1, 1)
MAX_NAMED = 100_000
"""Jobs that one condition may name, an array being one; what several of its questions name counts for each of them."""


class StoredJobs(msgspec.Struct):
    """Jobs looked up in the store: finished jobs by id (None: there is none), ids by name (ascending)."""

    jobs: dict[int, Ended | None] = {}
    elements: dict[int, Ended | None] = {}
    """Finished elements of arrays that were live when read; out of date once the array has ended."""
    names: dict[str, Jobs] = {}
    alike: dict[str, EndedAlike] = {}
    """Of a name with ``*`` and many jobs those that are not in ``jobs``."""


NOTHING = StoredJobs()


class NeedsLookup(Refused):
    """Look up these jobs in the store and decide again."""

    def __init__(self, jobs: list[int], elements: list[int], names: list[str]) -> None:
        super().__init__("The jobs of the dependency condition could not be read")
        self.jobs = list(dict.fromkeys(jobs))
        self.elements = list(dict.fromkeys(elements))
        self.names = list(dict.fromkeys(names))


class Resolved(NamedTuple):
    """A condition that has been read."""

    depend: Depend
    stands: int | None
    """MET, BLOCKED or NEVER, where that shows at once: by what has ended, and a few live jobs."""
    single: dict[int, Ended]
    """Ended jobs that it names."""
    alike: EndedAlike
    """The others of them."""

    @property
    def ended(self) -> tuple[tuple[int, Ended], ...]:
        """All of them one by one."""
        return tuple((self.single | {job: ended for those, ended in self.alike for job in those}).items())


class _Open(Exception):
    """Whether a condition is met takes more than a look."""


def resolve(cluster: Cluster, text: str, caller: Caller, orphan: bool, known: StoredJobs, indices: Ranges | None) -> Resolved:
    """The condition as it stands now; ``indices``: of the array that gets it. Raises Refused, NeedsLookup."""
    try:
        tree = parse(text)
        questions = questions_of(tree)
    except DependencyError as error:
        raise Refused(str(error)) from None
    reading = _Reading(cluster, caller, known)
    ids = tuple(reading.question(question, indices) for question in questions)
    if reading.missing_jobs or reading.missing_elements or reading.missing_names:
        raise NeedsLookup(reading.missing_jobs, reading.missing_elements, reading.missing_names)
    stands = reading.stands(tree, dict(zip(questions, ids, strict=True)))
    alike = tuple(one for alike, _ in reading.alike.values() for one in alike)
    return Resolved(Depend(text=text, ids=ids, orphan=orphan), stands, reading.ended, alike)


class _Reading:
    """Resolver of the questions of one condition."""

    def __init__(self, cluster: Cluster, caller: Caller, known: StoredJobs) -> None:
        self.cluster = cluster
        self.caller = caller
        self.known = known
        self.ended: dict[int, Ended] = {}
        self.alike: dict[Question, tuple[EndedAlike, list[int]]] = {}
        """Question to those of its jobs of which it is known how they ended alike, and to the others."""
        self.missing_jobs: list[int] = []
        self.missing_elements: list[int] = []
        self.missing_names: list[str] = []
        self._read: set[Question] = set()
        self._count = 0

    def question(self, question: Question, indices: Ranges | None) -> Jobs:
        """The job ids that the question is about."""
        if question.function == "time":
            return ()
        ref = question.ref
        if ref.same_index and indices is None:
            raise Refused(f"{shown(ref)}: The job is no array, so that [*] has no meaning")
        jobs, are_live = ((ref.id,), False) if ref.id else self._by_name(ref)
        self._count += len(jobs)
        if self._count > MAX_NAMED:
            raise Refused(f"{shown(ref)}: Dependency condition names more than {MAX_NAMED} jobs")
        plain = not _asks_elements(question)
        if question not in self._read and not (are_live and plain):
            self._read.add(question)
            for job in jobs if are_live or ref.id else self._apart(jobs, question, indices):
                self._job(job, question, indices)
        return jobs

    def _apart(self, jobs: Jobs, question: Question, indices: Ranges | None) -> Iterable[int]:
        """Those of the ended jobs of a name that have to be looked at one by one."""
        alike = self.known.alike.get(_wanted(question.ref), ())
        if not alike or not isinstance(jobs, Ranges):
            return jobs
        for _, ended in alike:
            self._check(question.ref, ended.indices or None, indices)
        apart = [job for job in self.known.jobs if job in jobs]
        self.alike[question] = alike, apart
        return apart

    def stands(self, tree: Tree | Question, ids: dict[Question, Jobs]) -> int | None:
        """MET, BLOCKED or NEVER; None: it takes more than a look."""
        try:
            answer = dependency.evaluate(tree, lambda question: dependency.judge(question, self._counts(question, ids[question])))
        except _Open:
            return None
        return NEVER if answer is None else MET if answer else BLOCKED

    def _counts(self, question: Question, jobs: Jobs) -> list[JobCounts]:
        """Those of jobs that ended alike once."""
        only = question.ref.indices
        alike, apart = self.alike.get(question, ((), jobs))
        if question.function == "time" or question.ref.same_index or len(apart) > FEW:
            raise _Open
        return [*(of_ended(ended, only) for _, ended in alike), *(self._count_of(question, job) for job in apart)]

    def _count_of(self, question: Question, job: int) -> JobCounts:
        ended = self.ended.get(job)
        if ended is None:
            return counts_of(self.cluster, question, job)
        if job in self.cluster.arrays.rows:
            raise _Open
        return of_ended(ended, question.ref.indices)

    def _by_name(self, ref: JobRef) -> tuple[Jobs, bool]:
        """(the ids of the jobs of a name, whether these are live)."""
        caller, cluster = self.caller, self.cluster
        # a name matches the caller's own jobs; for an administrator, everybody's
        live = cluster.find_named(ref.name, ref.prefix, None if is_admin(cluster.conf, caller) else caller.user)
        newest = cluster.conf.params.job_dep_last_sub
        if live and not newest:
            return live, True
        wanted = _wanted(ref)
        if wanted not in self.known.names:
            self.missing_names.append(wanted)
            return live, bool(live)
        ended = self.known.names[wanted]
        if not live and not ended:
            raise Refused(f"{shown(ref)}: {UNKNOWN}")
        if newest:  # which may have ended while an older one is live
            return (max((*_last(live), *_last(ended))),), False
        return ended if isinstance(ended, Ranges) else jobs_of(ended), False

    def _job(self, job: int, question: Question, indices: Ranges | None) -> None:
        ref, cluster = question.ref, self.cluster
        array = cluster.arrays.rows.get(job)
        if job in cluster.jobs.rows:
            self._check(ref, ONE if ref.indices is None and not ref.same_index else None, indices)
        elif array is not None:
            self._check(ref, array.indices, indices)
            if _asks_elements(question):
                self._live_array(array, question)
        elif job in cluster.ended.rows and len(cluster.ended.rows[job]) >= len(cluster.ended.rows[job].indices or ONE):
            self._check(ref, cluster.ended.rows[job].indices or None, indices)
        elif job not in self.known.jobs:
            self.missing_jobs.append(job)
        else:
            ended = self.known.jobs[job]
            if ended is None:
                raise Refused(f"{shown(ref)}: {UNKNOWN}")
            self._check(ref, ended.indices or None, indices)
            self.ended[job] = ended

    def _check(self, ref: JobRef, own: Ranges | None, indices: Ranges | None) -> None:
        if ref.same_index and (own is None or indices is None or len(own) != len(indices) or own != indices):
            raise Refused(DIFFERENT_SIZE)
        if ref.indices is not None and (own is None or ref.indices.minus(own)):
            raise Refused(f"{shown(ref)}: {UNKNOWN}")

    def _live_array(self, array: Array, question: Question) -> None:
        """How its elements have ended; where the counts are not enough, from the store."""
        tracked, of_post = self.cluster.ended.rows.get(array.job) or Ended(), question.function in POST
        # where it was asked for the elements' ends before, how their post-execution commands ended may not have been read
        if len(tracked) == array.done + array.exited and not (tracked and of_post):
            return
        live = Ranges.from_indices(key >> 32 for key in self.cluster.elements.get(array.job, ()))
        over = array.indices.minus(array.pending).minus(array.held).minus(live)
        if not array.exited and not of_post:
            self.ended[array.job] = Ended(done=over)
            return
        read = self.known.elements.get(array.job)
        both = tracked.joined(read) if read is not None else tracked
        if len(both) == array.done + array.exited and (read is not None or not of_post):
            self.ended[array.job] = both
        else:
            self.missing_elements.append(array.job)


def _asks_elements(question: Question) -> bool:
    """Whether it takes how each element of an array ended, and not only how many of them ended well and badly."""
    ref = question.ref
    return ref.indices is not None or ref.same_index or bool(question.op) or question.function in POST


def _wanted(ref: JobRef) -> str:
    """The name by which jobs are looked up."""
    return ref.name + ("*" if ref.prefix else "")


def _last(jobs: Jobs) -> Jobs:
    return (jobs.max(),) if isinstance(jobs, Ranges) else jobs[-1:]


def shown(ref: JobRef) -> str:
    """A job reference as shown in errors."""
    index = "[*]" if ref.same_index else f"[{ref.indices.text()}]" if ref.indices is not None else ""
    return (str(ref.id) if ref.id else ref.name + ("*" if ref.prefix else "")) + index
