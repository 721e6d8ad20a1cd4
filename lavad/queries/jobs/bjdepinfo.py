"""bjdepinfo: what a job waits for (its parents) or what waits for it (-c, its children), level by level; bjdep: its condition."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.events.records import stands
from lavad.core.job.depend import Depend, Jobs
from lavad.core.job.job import Array, Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.dependency import Question, parse, questions_of
from lavad.core.lang.ids import job_of, key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import JobState
from lavad.core.lang.windows import local_of
from lavad.core.rules.dependency_eval import answer_of
from lavad.local_time import local_time
from lavad.queries.facts import visibility
from lavad.queries.frame.request import Request, Shown, out
from lavad.store.asked import Find
from proto.numbers import find_number

MOST_ELEMENTS = 1000
"""Of more elements of one array than these, which a condition names, the array is shown."""
HEADER = "{:<14} {:<14} {:<14} {:<12} {}\n"


def show(request: Request) -> Iterator[Shown]:
    """A line a relation; -l says the condition first; -r goes on to the relations of these."""
    options = request.options()
    if len(request.words) != 1:
        raise Refused("bjdepinfo: one job ID is needed")
    relations = Relations(request)
    root = relations.find(request.words[0])
    children = "c" in options
    levels = _levels(options.find("r") or options.find("c"), "r" in options)
    rows = list(relations.walk(root, children, levels))
    if not rows:
        raise Refused(f"Job <{request.words[0]}> has no {'children' if children else 'dependencies'}")
    if "l" in options:
        for key in dict.fromkeys(other if children else of for of, other, _ in rows):
            yield out(relations.sentence(show_key(key)))
    kind = "CHILD" if children else "PARENT"
    yield out(HEADER.format("JOBID", kind, f"{kind}_STATUS", f"{kind}_NAME", "LEVEL"))
    for of, other, level in rows:
        state, name = relations.facts(other)
        name = name if len(name) <= 11 else "*" + name[-10:]
        yield out(HEADER.format(show_key(of), show_key(other), state, name, level))


def _levels(given: str | None, deep: bool) -> int:
    if given is None:
        return 1 << 30 if deep else 1
    levels = find_number(given)
    if not levels:
        raise Refused(f"{given[:80]}: Illegal level value")
    return levels


class Relations:
    """The parents and children of jobs, live or finished."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.cluster = request.cluster

    def find(self, word: str) -> int:
        """The key of a job that is there; raises Refused."""
        try:
            job, indices = parse_job_id(word)
        except ArrayError as error:
            raise Refused(str(error)) from None
        key = key_of(job, indices.min() if indices else 0)
        row = self.row(key)
        if row is None or not visibility.sees(self.request, self.request.view.spec(row), detail=True):
            raise Refused(f"Job <{word}> is not found")
        return key

    def row(self, key: int) -> Job | Array | None:
        """The record, live or finished; of an element that waits untouched, that of its array."""
        live = self.cluster.jobs.rows.get(key) or self.cluster.arrays.rows.get(job_of(key))
        if isinstance(live, Job) or (live is not None and (not key >> 32 or _waits(live, key >> 32))):
            return live
        found = self.request.view.finished_jobs(Find(keys=(key,)))
        if key >> 32 or (found and not found[0].key >> 32):
            return found[0] if found else None
        return self.request.view.reader.finished_array(key)

    def facts(self, key: int) -> tuple[str, str]:
        """State and name; an array has the state of the elements that are not over yet."""
        row = self.row(key)
        if isinstance(row, Job):
            return row.state.name, row.name
        if row is None:
            return "-", "-"
        if key >> 32:
            return (JobState.PEND if key >> 32 in row.pending else JobState.PSUSP).name, f"{row.name}[{key >> 32}]"
        if row.done + row.exited == len(row.indices):
            return (JobState.EXIT if row.exited else JobState.DONE).name, row.name
        running = self.cluster.use.array_running.get(row.job, 0)
        return (JobState.RUN if running else JobState.PSUSP if row.held and not row.pending else JobState.PEND).name, row.name

    def walk(self, root: int, children: bool, levels: int) -> Iterator[tuple[int, int, int]]:
        """(job, its parent or child, level), each pair once, level by level."""
        edge, seen, level = [root], {root}, 1
        while edge and level <= levels:
            following = []
            for key in edge:
                for other in self._children(key) if children else self._parents(key):
                    yield key, other, level
                    if other not in seen:
                        seen.add(other)
                        following.append(other)
            edge, level = following, level + 1

    def _parents(self, key: int) -> list[int]:
        depend = self.depend(key)
        if depend is None:
            return []
        return sorted({one for question, jobs in _questions(depend) for job in jobs for one in _named(question, job, key)})

    def _children(self, key: int) -> list[int]:
        sets = self.cluster.conditions.named.sets_of(job_of(key))
        return sorted({waiter for jobs in sets for condition in jobs.conditions for waiter in condition.waiters})

    def depend(self, key: int) -> Depend | None:
        row = self.row(key)
        return row.depend if row is not None else None

    def sentence(self, word: str) -> str:
        """Whether the condition of a job is met."""
        key = self.find(word)
        row, depend = self.row(key), self.depend(key)
        if depend is None:
            return ""
        waits = row.blocked if isinstance(row, Job) else bool(row.waiting) if row is not None else 0
        if isinstance(row, Array) and key >> 32:
            waits = stands(row, key >> 32)
        return f"The dependency condition of job <{word}> is {'not ' if waits else ''}satisfied: {depend.text}\n"


def show_conditions(request: Request) -> Iterator[Shown]:
    """bjdep (OpenLava's): each question of a job's dependency condition, and whether it is met."""
    request.options()
    if len(request.words) != 1:
        raise Refused("bjdep: one job ID is needed")
    relations = Relations(request)
    key = relations.find(request.words[0])
    depend = relations.depend(key)
    if depend is None:
        raise Refused("bjdep: Job has no dependencies.")
    yield out(f"Dependencies of job {request.words[0]}\n")
    yield out("DEPENDENCY  JOBID  JOB_STATUS   DEPENDENCY_STATUS\n")
    local = local_of(local_time(request.now))
    for question, jobs in _questions(depend):
        for job in jobs:
            met = answer_of(request.cluster, question, (job,), local)
            for one in _named(question, job, key):
                state, _ = relations.facts(one)
                yield out(f"{question.function:<11} {show_key(one):<7} {state:<12} {'true' if met else 'false'}\n")


def _questions(depend: Depend) -> Iterator[tuple[Question, Jobs]]:
    """Each question of a condition, with the jobs that it is about."""
    return zip(questions_of(parse(depend.text)), depend.ids, strict=False)


def _named(question: Question, job: int, key: int) -> list[int]:
    """The elements of a job that a question of the job ``key`` names; the job where it names none, or very many."""
    if question.ref.same_index and key >> 32:
        return [key_of(job, key >> 32)]
    indices = question.ref.indices
    if not indices or len(indices) > MOST_ELEMENTS:
        return [job]
    return [key_of(job, index) for index in indices]


def _waits(array: Array, index: int) -> bool:
    """Whether an element still waits in its array, without a record of its own."""
    return index in array.pending or index in array.held
