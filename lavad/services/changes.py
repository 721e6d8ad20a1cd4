"""What became of a user's jobs, for programs that have many under way: one ask in the place of one for each job.

Rule: the changes of the users who ask are kept in memory, the newest of each. A cursor that is of another master, or too old,
is answered with ``lost`` and a new one: the program then reads the states of its jobs, as ``bjobs`` shows them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice

from lavad.committed import Committed
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import (
    ElementsKilled,
    JobFinished,
    JobRequeued,
    JobResumed,
    JobSubmitted,
    JobSuspended,
    PartStarted,
    SpecAdded,
)
from lavad.core.events.base import Event, JobEvent
from lavad.core.job.job import Array, Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show
from lavad.core.lang.states import TermReason
from proto.answers import Answer, Change

KEPT = 10_000
"""Changes of one user."""
IN_ONE_ANSWER = 2_000
MOST_USERS = 1_000
LONGEST = 60.0
"""Seconds that an ask waits for a change."""
FORGOTTEN = 300.0
"""Seconds without an ask after which a user's changes are not kept any more."""
SPARE_SPECS = 1_000
_STATES = (PartStarted, JobSuspended, JobResumed, JobRequeued, JobFinished)


class _Kept:
    """The newest changes of one user; ``number`` tells this memory from another of the same user."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rows: deque[Change] = deque(maxlen=KEPT)
        self.count = 0
        """Of all that there were."""
        self.asked = 0.0
        self.waiting: set[asyncio.Future[None]] = set()
        self.watched = False
        """Whether somebody asked for every event of the user's jobs; ``touched`` counts these, ``watching`` wait for one."""
        self.touched = 0
        self.watching: set[asyncio.Future[None]] = set()

    def add(self, row: Change) -> None:
        self.rows.append(row)
        self.count += 1

    def wake(self) -> None:
        _wake(self.waiting)

    def touch(self) -> None:
        self.touched += 1
        _wake(self.watching)


def _wake(waiting: Iterable[asyncio.Future[None]]) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(None)


class Changes:
    """Changes of jobs by user: their start, suspension, requeue and end, and the end of whole arrays."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._users: dict[str, _Kept] = {}
        self._numbers = 0
        self._specs: dict[int, _Kept] = {}
        """The specs of those users: the cluster may have forgotten one when the end of its last job is told."""

    def committed(self, committed: Committed) -> None:
        """Keep what has changed, and answer who waits for it."""
        if not self._users:
            return
        ended = {job.key: job for job in committed.finished}
        arrays = {array.job: array for array in committed.arrays}
        found = [self._found(event, ended, arrays) for event in committed.events]
        found += [(self._specs.get(array.spec), _row_of_array(array)) for array in committed.arrays]
        news = set()
        for kept, row in found:
            if kept is not None and row is not None:
                kept.add(row)
                news.add(kept)
        for kept in news:
            kept.wake()
        if any(kept.watched for kept in self._users.values()):
            specs = {self._spec_of(event, ended, arrays) for event in committed.events}
            for kept in {self._specs[spec] for spec in specs if spec in self._specs}:
                kept.touch()
        if len(self._specs) > 2 * len(self._cluster.specs.rows) + SPARE_SPECS:
            self._specs = {spec: kept for spec, kept in self._specs.items() if spec in self._cluster.specs.rows}

    def _found(self, event: Event, ended: dict[int, Job], arrays: dict[int, Array]) -> tuple[_Kept | None, Change | None]:
        if isinstance(event, SpecAdded):
            if (kept := self._users.get(event.value.user)) is not None:
                self._specs[event.spec] = kept
        elif isinstance(event, ElementsKilled):
            array = arrays.get(event.key) or self._cluster.arrays.rows.get(event.key)
            if array is not None:
                text = f"{event.key}[{event.elements.text()}]"
                row = Change(job=text, state=event.state.name, status=0, reason=event.reason.name, by=event.by)
                return self._specs.get(array.spec), row
        elif isinstance(event, _STATES):
            # of a job that has ended in this batch its end alone is told
            job = ended.get(event.key) if isinstance(event, JobFinished) else self._cluster.find_job(event.key)
            if job is not None and not (isinstance(event, PartStarted) and not _is_first(job, event)):
                return self._specs.get(job.spec), _row(job, event)
        return None, None

    def _spec_of(self, event: Event, ended: dict[int, Job], arrays: dict[int, Array]) -> int:
        """The spec of the job that an event is about; 0: of none."""
        if isinstance(event, JobSubmitted):
            return event.spec
        if not isinstance(event, JobEvent):
            return 0
        job = ended.get(event.key) or self._cluster.find_job(event.key)
        array = arrays.get(event.key) or self._cluster.arrays.rows.get(event.key)
        return job.spec if job is not None else array.spec if array is not None else 0

    async def every(self, user: str, cursor: str, wait: float) -> Answer:
        """A cursor that differs from this one after any event of the user's jobs; waits for one ``wait`` seconds at most."""
        kept = self._remembered(user, wait)
        kept.watched = True
        if cursor == f"{self._name(kept)}.{kept.touched}" and wait:
            await _one(kept.watching, wait)
            kept.asked = asyncio.get_running_loop().time()
        return {"after": f"{self._name(kept)}.{kept.touched}", "lost": False, "changes": []}

    async def since(self, user: str, cursor: str, wait: float) -> Answer:
        """The changes after a cursor ("": from now on), with the next cursor; waits for one ``wait`` seconds at most."""
        kept = self._remembered(user, wait)
        number, _, place = cursor.rpartition(".")
        first = kept.count - len(kept.rows)
        if number != self._name(kept) or not place.isdecimal() or not first <= int(place) <= kept.count:
            return {"after": f"{self._name(kept)}.{kept.count}", "lost": bool(cursor), "changes": []}
        if int(place) == kept.count and wait:
            await _one(kept.waiting, wait)
            kept.asked = asyncio.get_running_loop().time()
            first = kept.count - len(kept.rows)
            if int(place) < first:
                return {"after": f"{self._name(kept)}.{kept.count}", "lost": True, "changes": []}
        begin = int(place) - first
        rows = list(islice(kept.rows, begin, begin + IN_ONE_ANSWER))
        return {"after": f"{self._name(kept)}.{int(place) + len(rows)}", "lost": False, "changes": rows}

    def _name(self, kept: _Kept) -> str:
        return f"{self._cluster.epoch}.{kept.number}"

    def _remembered(self, user: str, wait: float) -> _Kept:
        """The user's memory, which begins now if there is none; those of users who ask no more end."""
        if not 0 <= wait <= LONGEST:
            raise Refused(f"{wait:g}: a wait for changes is at most {LONGEST:g} seconds")
        now = asyncio.get_running_loop().time()
        for name, kept in list(self._users.items()):
            if not kept.waiting and not kept.watching and now - kept.asked > FORGOTTEN:
                del self._users[name]
                self._specs = {spec: one for spec, one in self._specs.items() if one is not kept}
        found = self._users.get(user)
        if found is None:
            if len(self._users) >= MOST_USERS:
                raise Refused(f"At most {MOST_USERS} users ask for changes of their jobs at a time")
            self._numbers += 1
            found = self._users[user] = _Kept(self._numbers)
            self._specs.update({number: found for number, spec in self._cluster.specs.rows.items() if spec.user == user})
        found.asked = now
        return found


async def _one(waiting: set[asyncio.Future[None]], seconds: float) -> None:
    """Wait with the others."""
    news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting.add(news)
    try:
        await asyncio.wait([news], timeout=seconds)
    finally:
        waiting.discard(news)


def _is_first(job: Job, event: PartStarted) -> bool:
    return job.run is not None and job.run.parts[0].host == event.host


def _row_of_array(array: Array) -> Change:
    return Change(job=str(array.job), state="EXIT" if array.exited else "DONE")


def _row(job: Job, event: JobEvent) -> Change:
    row = Change(job=show(job.key), state=job.state.name, host=job.run.parts[0].host if job.run is not None else "")
    if isinstance(event, JobFinished) and job.outcome is not None:
        row["status"] = job.outcome.status
        row["why"] = job.outcome.why
        if job.outcome.reason is not TermReason.NONE:
            row["reason"] = job.outcome.reason.name
        if event.by:
            row["by"] = event.by
    return row
