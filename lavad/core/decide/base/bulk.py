"""Commands about many jobs, decided in chunks, so that other callers are served in between.

Rule: each chunk is decided on the state at its turn, since jobs start, end and change in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.room import TOO_MANY, has_room
from lavad.core.decide.base.select import FINISHED, UNKNOWN, Found, Target, select
from lavad.core.decide.base.specs import with_specs
from lavad.core.job.job import Array, Job
from lavad.core.lang.asks import Caller, Select
from lavad.core.lang.ids import index_of, key_of
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.site.rights import DENIED, why_not_admin, why_not_control
from proto.answers import Result

AT_ONCE = 500
"""Jobs, or elements that get a record of their own, in one chunk; other callers wait for a chunk."""

OnJob = Callable[[Job, float], "list[ev.Event] | str"]
OnElements = Callable[[Array, Ranges, float], "list[ev.Event] | str"]
"""The events, or why not; the time is that of the chunk."""
LEFT_OUT = "left out"
"""Why not, of what an option of the command leaves out: a target of which nothing is meant has no line in the answer."""


class Chunking(NamedTuple):
    """How a command is cut into chunks.

    ``before``: list in which its decisions put the new specs of jobs. ``begin`` is called before a chunk is
    decided, or decided again as it could not be stored: what they know of it is to be forgotten. ``by_element``: each untouched
    element counts as a job for the size of a chunk; ``splits``: so it does where not all elements of its array are meant, as they
    then get records of their own.
    """

    before: list[ev.Event] | None = None
    begin: Callable[[], None] | None = None
    by_element: bool = False
    splits: bool = False


WHOLE = Chunking()


def decide_each(
    cluster: Cluster,
    jobs: Select,
    caller: Caller,
    now: float,
    on_job: OnJob,
    on_elements: OnElements,
    chunking: Chunking = WHOLE,
) -> Decided:
    """Call ``on_job`` or ``on_elements`` for every target that the caller may control; they return events, or why not."""
    targets = select(cluster, jobs, caller)
    if len(jobs.ids) > 1:
        targets = _distinct(targets)
    if not targets:
        return Decided(answer={"results": [], "none": why_none(cluster, jobs, caller)})
    chunks = _Chunks(targets, caller, on_job, on_elements, chunking)
    return chunks.next_chunk(cluster, now, _Progress())


def why_none(cluster: Cluster, jobs: Select, caller: Caller) -> str:
    """What is said where nothing is selected; everybody's jobs are for administrators."""
    where = why_not_admin(cluster.conf, caller).removeprefix(DENIED) if jobs.user == "all" else ""
    return f"{UNKNOWN}{where}"


class _Progress:
    """How far a command has come."""

    def __init__(self, at: int = 0, rest: Target | None = None, refusal: str = "", done: bool = False) -> None:
        self.at = at
        self.rest = rest
        """The rest of that target; None: all of it."""
        self.refusal = refusal
        self.done = done
        """Whether an earlier chunk did something to that target."""


class _Chunks:
    def __init__(
        self,
        targets: list[Found],
        caller: Caller,
        on_job: OnJob,
        on_elements: OnElements,
        chunking: Chunking,
    ) -> None:
        self._targets = targets
        self._caller = caller
        self._on_job = on_job
        self._on_elements = on_elements
        self._before: list[ev.Event] = [] if chunking.before is None else chunking.before
        self._begin = chunking.begin
        self._by_element = chunking.by_element
        self._splits = chunking.splits

    def next_chunk(self, cluster: Cluster, now: float, progress: _Progress, results: tuple[list[Result], ...] = ()) -> Decided:
        """Decide the next chunk. The object keeps no progress, so that a chunk that could not be stored can be decided again."""
        self._before.clear()
        if self._begin is not None:
            self._begin()
        events: list[ev.Event] = []
        lines: list[Result] = []
        at, rest, refusal, done = progress.at, progress.rest, progress.refusal, progress.done
        denied: dict[int, str] = {}
        room = AT_ONCE
        while room > 0 and at < len(self._targets):
            found = self._targets[at]
            target = Target(shown=str(found), keys=[found]) if isinstance(found, int) else found
            one_by_one = self._one_by_one(cluster, rest or target)
            due, rest = self._cut(rest or target, room, one_by_one)
            room -= max(1, len(due.keys) + (len(due.untouched) if one_by_one else bool(due.untouched)))
            why, did = self._act(cluster, due, now, denied, events)
            refusal, done = _first(refusal, why), done or did
            if rest is None:
                why = "" if done else refusal
                if why != LEFT_OUT:
                    lines.append({"id": target.shown, "ok": not why, "why": why})
                at, refusal, done = at + 1, "", False
        all_events = with_specs(cluster, self._before, events)
        results = (*results, lines)
        if at < len(self._targets):
            next_progress = _Progress(at, rest, refusal, done)
            return Decided(events=all_events, more=lambda cluster, now: self.next_chunk(cluster, now, next_progress, results))
        told = [result for some in results for result in some]
        return Decided(events=all_events, answer={"results": told} if told else {"results": [], "none": UNKNOWN})

    def _one_by_one(self, cluster: Cluster, target: Target) -> bool:
        """Whether each untouched element counts."""
        array = cluster.arrays.rows.get(target.array)
        if not self._splits or array is None:
            return self._by_element
        return len(target.untouched) < len(array.pending) + len(array.held)

    def _cut(self, target: Target, room: int, one_by_one: bool) -> tuple[Target, Target | None]:
        """(what of a target belongs to this chunk, the rest of it)."""
        untouched, left = target.untouched.first(room) if one_by_one else (target.untouched, EMPTY)
        room -= len(untouched) if one_by_one else 0
        if not left and len(target.keys) <= room:
            return target, None
        due = Target(shown="", keys=target.keys[:room], array=target.array, untouched=untouched, why=target.why)
        return due, Target(shown="", keys=target.keys[room:], array=target.array, untouched=left)

    def _act(
        self, cluster: Cluster, target: Target, now: float, denied: dict[int, str], events: list[ev.Event]
    ) -> tuple[str, bool]:
        """Collect the events of a target: (why something could not be done, whether anything was done)."""
        if target.why or not (target.keys or target.untouched):
            return target.why, not target.why
        refusal, done = "", False
        keys, untouched = _still_live(cluster, target)
        if untouched:
            array = cluster.arrays.rows[target.array]
            answer = self._why_denied(cluster, array, denied) or self._of_elements(cluster, array, untouched, now)
            refusal, done = _collect(answer, events)
        for key in keys:
            job = cluster.jobs.rows[key]
            answer = self._why_denied(cluster, job, denied) or self._on_job(job, now)
            why, did = _collect(answer, events)
            refusal, done = _first(refusal, why), done or did
        return refusal if keys or untouched else FINISHED, done

    def _of_elements(self, cluster: Cluster, array: Array, untouched: Ranges, now: float) -> list[ev.Event] | str:
        """What is done to untouched elements, or why not: their owner may have no more records."""
        answer = self._on_elements(array, untouched, now)
        if isinstance(answer, str):
            return answer
        split = sum(1 for event in answer if isinstance(event, ev.JobEvent) and index_of(event.key))
        return answer if has_room(cluster, cluster.specs.rows[array.spec].user, split) else TOO_MANY

    def _why_denied(self, cluster: Cluster, job: Job | Array, denied: dict[int, str]) -> str:
        why = denied.get(job.spec)
        if why is None:
            spec = cluster.specs.rows[job.spec]
            why = denied[job.spec] = why_not_control(cluster.conf, spec, self._caller)
        return why


def _first(refusal: str, why: str) -> str:
    """The first refusal, of those that are told the first."""
    return why if why and refusal in ("", LEFT_OUT) else refusal


def _collect(answer: list[ev.Event] | str, events: list[ev.Event]) -> tuple[str, bool]:
    if isinstance(answer, str):
        return answer, False
    events += answer
    return "", True


def _still_live(cluster: Cluster, target: Target) -> tuple[list[int], Ranges]:
    """The live keys and untouched elements of a target; an element that was untouched may have a record by now."""
    rows = cluster.jobs.rows
    keys = [key for key in target.keys if key in rows]
    if not target.untouched:
        return keys, EMPTY
    array = cluster.arrays.rows.get(target.array)
    untouched = array.pending.union(array.held).intersect(target.untouched) if array is not None else EMPTY
    if untouched != target.untouched:
        keys += [key for index in target.untouched.minus(untouched) if (key := key_of(target.array, index)) in rows]
    return keys, untouched


def _distinct(targets: list[Found]) -> list[Found]:
    """The targets, each without jobs that an earlier one names (``bkill 5 5``)."""
    keys: set[int] = set()
    untouched: dict[int, Ranges] = {}
    found: list[Found] = []
    for target in targets:
        if isinstance(target, int):
            found.append(Target(shown=str(target)) if target in keys else target)
            keys.add(target)
            continue
        target.keys = [key for key in target.keys if key not in keys]
        keys.update(target.keys)
        if target.untouched:
            known = untouched.get(target.array, EMPTY)
            untouched[target.array] = known.union(target.untouched)
            target.untouched = target.untouched.minus(known)
        found.append(target)
    return found
