"""Resources in use by live jobs: slots by queue, user and host, and the slots, reserved resources and GPUs of each host.

The master's re-check and the scheduler's cycle use the same index, which ``Cluster`` updates with each change of a job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from operator import is_not
from typing import TypeVar

from lavad.core.cluster.gpu_book import GpuBook
from lavad.core.job.groups import lineage
from lavad.core.job.job import Array, Attempt, Job, Part, Placed
from lavad.core.job.resize import is_part, uid_of
from lavad.core.job.spec import Spec
from lavad.core.lang.cpus import taken_by
from lavad.core.lang.rusage_decay import next_change
from lavad.core.lang.states import OVER, STARTED, SUSPENDED, JobState

PEND, PSUSP, RUN, SSUSP, USUSP, RSV = range(6)
COLUMNS = ("pend", "psusp", "run", "ssusp", "ususp", "rsv")
K = TypeVar("K")
_COLUMN = {
    JobState.PEND: PEND,
    JobState.PSUSP: PSUSP,
    JobState.RUN: RUN,
    JobState.WAIT: RUN,
    JobState.SSUSP: SSUSP,
    JobState.USUSP: USUSP,
    JobState.UNKWN: RUN,
    JobState.ZOMBI: RUN,
}


class HostUse:
    """Resources in use on one host."""

    __slots__ = ("cpus", "exclusive", "gpus", "held", "jobs", "reserved", "slots", "touched")

    def __init__(self) -> None:
        self.touched = 0
        """Counts the changes, so that a scheduler sees which hosts to look at again."""
        self.slots = 0
        self.exclusive = 0
        self.jobs: dict[int, Part] = {}
        self.held: dict[int, Placed] = {}
        """Pending job to the slots and resources reserved for it here."""
        self.reserved: dict[str, float] = {}
        self.gpus = GpuBook()
        self.cpus: dict[int, int] = {}
        """CPU to the number of jobs that use it exclusively."""

    def add(self, key: int, part: Part, spec: Spec, sign: int, given_up: bool = False) -> None:
        """Add (``sign`` 1) or subtract (-1) the resources of ``part``; ``given_up``: without its slots."""
        self.touched += 1
        self.slots += 0 if given_up else sign * part.slots
        self.exclusive += sign * spec.exclusive
        self._reserve(part, sign)
        for cpu in taken_by(part.binds) if part.binds else ():
            shift(self.cpus, cpu, sign)
        if part.gpus:
            self.gpus.count(part.gpus, spec, sign)
        if sign > 0:
            self.jobs[key] = part
        else:
            self.jobs.pop(key, None)

    def _reserve(self, part: Part, count: int) -> None:
        """Add the amounts that ``part`` reserves so many times; below 0 subtract them."""
        for name, amount in part.reserved:
            left = self.reserved.get(name, 0.0) + count * exact(amount)
            if left:
                self.reserved[name] = left
            else:
                self.reserved.pop(name, None)

    def add_alike(self, parts: Mapping[int, Part], spec: Spec, sign: int) -> None:
        """As ``add``, of parts of several jobs (by key) that have the same slots and amounts, and neither GPUs nor CPUs."""
        part, count = next(iter(parts.values())), sign * len(parts)
        self.touched += len(parts)
        self.slots += count * part.slots
        self.exclusive += count * spec.exclusive
        self._reserve(part, count)
        if sign > 0:
            self.jobs.update(parts)
        else:
            for key in parts:
                del self.jobs[key]

    def keep(self, sign: int) -> None:
        """Add (1) or remove (-1) a job without a part here that keeps the host exclusive."""
        self.touched += 1
        self.exclusive += sign

    def hold(self, key: int, part: Placed, sign: int) -> None:
        """Add (``sign`` 1) or remove (-1) a reservation of a pending job; a ledger subtracts what its victims still use."""
        self.touched += 1
        if sign > 0:
            self.held[key] = part
        else:
            self.held.pop(key, None)


def exact(amount: float) -> float:
    """The amount rounded so that sums are exact, whatever the order in which jobs start and end."""
    return round(amount * _STEPS) / _STEPS


_STEPS = 1 << 20


def shift(counts: dict[K, int], key: K, by: int) -> None:
    """Add ``by`` to a count; entries at 0 are removed."""
    count = counts.get(key, 0) + by
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)


def _note(keys: dict[int, None], key: int, sign: int) -> None:
    if sign > 0:
        keys[key] = None
    else:
        keys.pop(key, None)


MANY = 8
"""Parts from which on a change of some of them is not worth indexing the others again."""
_JOB = tuple(name for name in Job.__struct_fields__ if name != "run")
_ATTEMPT = tuple(name for name in Attempt.__struct_fields__ if name != "parts")


def _uses(part: Part) -> tuple[object, ...]:
    return (part.host, part.slots, part.gpus, part.reserved, part.decays, part.binds)


def _moves(old: Part, new: Part) -> bool:
    """Whether it uses what it did, or is over and uses nothing."""
    if _uses(old) != _uses(new) or (old.state in OVER and new.state not in OVER):
        return False
    return new.state not in OVER or not new.decays


def changed_parts(old: Job, new: Job) -> list[tuple[Part, Part]] | None:
    """(before, after) of the parts that have changed, where nothing else has; None for another change, or of a small job.

    A job on a thousand hosts has a thousand reports of each kind: what is done for each must not grow with the job.
    """
    was, now = old.run, new.run
    if was is None or now is None or len(now.parts) < MANY or len(was.parts) != len(now.parts):
        return None
    if any(getattr(old, name) is not getattr(new, name) for name in _JOB):
        return None
    if any(getattr(was, name) is not getattr(now, name) for name in _ATTEMPT):
        return None
    pairs = zip(was.parts, now.parts, strict=True)
    changed = list(compress(pairs, map(is_not, was.parts, now.parts)))
    return changed if all(_moves(a, b) for a, b in changed) else None


def only_elements(old: Array, new: Array) -> bool:
    """Whether nothing has changed of an array that is indexed but which of its elements are pending: so at each start and end."""
    return (
        old.spec == new.spec
        and old.name is new.name
        and old.held is new.held
        and old.limit == new.limit
        and old.position == new.position
        and old.queue_time == new.queue_time
        and old.depend is new.depend
        and old.waiting is new.waiting
        and old.never is new.never
        and old.messages is new.messages
        and old.indices is new.indices
    )


class UsageIndex:
    """Sums of slots: ``queues``, ``users`` and ``pairs`` (queue, user) map to [pend, psusp, run, ssusp, ususp, rsv]."""

    def __init__(self) -> None:
        self.queues: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 6)
        self.users: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 6)
        self.pairs: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * 6)
        self.waiting: dict[str, int] = {}
        """User to the jobs and elements that have not started."""
        self.queue_waiting: dict[str, int] = {}
        """The same by queue."""
        self.queue_gpus: dict[str, int] = {}
        """Queue to the GPUs that its started jobs have or that are held for it; a GPU counts for each job on it."""
        self.hosts: defaultdict[str, HostUse] = defaultdict(HostUse)
        self.array_running: dict[int, int] = {}
        """Job id of an array to its started elements."""
        self.group_running: dict[str, int] = {}
        """Job group to the started jobs in it and in the groups below it."""
        self.decaying: dict[int, float] = {}
        """Started job to the time of the next decay of its rusage."""
        self.elastic: dict[int, None] = {}
        """Started jobs whose hosts may change."""
        self.copies: defaultdict[str, dict[int, None]] = defaultdict(dict)
        """Host to the started jobs whose checkpoints are copied to it."""
        self.unheld: dict[int, Attempt] = {}
        """The attempts that had the slots of chunks and are over, by job: within a fold (``core.events.chunks``)."""

    def _count(self, spec: Spec, column: int, slots: int) -> None:
        self.queues[spec.queue][column] += slots
        self.users[spec.user][column] += slots
        self.pairs[spec.queue, spec.user][column] += slots

    def _count_waiting(self, spec: Spec, column: int, jobs: int) -> None:
        self._count(spec, column, jobs * spec.slots)
        shift(self.waiting, spec.user, jobs)
        shift(self.queue_waiting, spec.queue, jobs)

    def _count_gpus(self, spec: Spec, gpus: tuple[str, ...], sign: int) -> None:
        if gpus and (spec.gpu is not None or spec.roles):
            shift(self.queue_gpus, spec.queue, sign * len(gpus))

    def job(self, job: Job, spec: Spec, sign: int) -> None:
        """Add (``sign`` 1) or subtract (-1) one live job."""
        if job.run is None:
            self._count_waiting(spec, _COLUMN[job.state], sign)
            for held in job.promised:
                self._count_gpus(spec, held.gpus, sign)
                self._count(spec, RSV, sign * held.slots)
                self.hosts[held.host].hold(job.key, held, sign)
            return
        run = job.run
        if run.elastic:
            _note(self.elastic, job.key, sign)
        if job.checkpoints is not None:
            self._index_holder(job.key, job.checkpoints.holder, sign)
        slots, decays = 0, False
        given_up = bool(job.preempted_for) and not job.preempted_for_good
        for part in run.parts:
            slots += part.slots
            if part.state not in OVER:
                decays = decays or bool(part.decays)
                self._count_gpus(spec, part.gpus, sign)
                self.hosts[part.host].add(job.key, part, spec, sign, given_up)
        self._count_started(job, run, spec, slots, sign)
        if decays:
            self._index_decay(job, sign)
        for host in run.alone:
            self.hosts[host].keep(sign)

    def _count_started(self, job: Job, run: Attempt, spec: Spec, slots: int, sign: int) -> None:
        self._count(spec, _COLUMN[job.state], sign * slots)
        if run.chunk:
            self._count_chunk(job.key, job.state, run, spec, slots, sign)
        if job.key >> 32 and job.state in STARTED:
            shift(self.array_running, job.key & 0xFFFFFFFF, sign)
        if spec.group:
            for group in lineage(spec.group):
                shift(self.group_running, group, sign)

    def _count_chunk(self, key: int, state: JobState, run: Attempt, spec: Spec, slots: int, sign: int) -> None:
        """A chunk counts as one job in its slot, which its last one has; as many others as there are wait (LSF's counts).

        While the one that has begun is suspended, so is the slot.
        """
        if not slots:
            self._count(spec, PEND, sign * spec.slots)
            if state in SUSPENDED:
                self._count(spec, _COLUMN[state], sign * spec.slots)
                self._count(spec, RUN, -sign * spec.slots)
            if sign > 0 and run.parts[0].state not in OVER:
                self.unheld.pop(key, None)
        elif sign < 0 and run.ahead and run.parts[0].state not in OVER:
            self.unheld[key] = run
        elif run.parts[0].state not in OVER:
            self.unheld.pop(key, None)

    def alike(self, jobs: Sequence[Job], spec: Spec, sign: int) -> None:
        """As ``job``, of running jobs of one class with one part each, which have the same where they have as many slots.

        They are elements of one array, or all separate.
        """
        groups: dict[tuple[str, int], dict[int, Part]] = {}
        for job in jobs:
            if job.run is not None:
                part = job.run.parts[0]
                groups.setdefault((part.host, part.slots), {})[job.key] = part
                if job.run.chunk:
                    self._count_chunk(job.key, job.state, job.run, spec, part.slots, sign)
        for (host, slots), parts in groups.items():
            self.hosts[host].add_alike(parts, spec, sign)
            self._count(spec, RUN, sign * len(parts) * slots)
        if jobs[0].key >> 32:
            shift(self.array_running, jobs[0].key & 0xFFFFFFFF, sign * len(jobs))
        for group in lineage(spec.group) if spec.group else ():
            shift(self.group_running, group, sign * len(jobs))

    def pend(self, spec: Spec, count: int) -> None:
        """Add so many pending jobs of a class for which nothing is reserved."""
        self._count_waiting(spec, PEND, count)

    def parts(self, job: Job, spec: Spec, changed: Iterable[tuple[Part, Part]]) -> None:
        """Parts of the job that ``changed_parts`` has found."""
        for old, new in changed:
            if old.state in OVER:
                continue
            use = self.hosts[new.host]
            if new.state in OVER:
                self._count_gpus(spec, old.gpus, -1)
                use.add(job.key, old, spec, -1, bool(job.preempted_for) and not job.preempted_for_good)
            else:  # it uses what it did: a scheduler need not look at the host again
                use.jobs[job.key] = new

    def part(self, key: int, host: str) -> Part | None:
        """The part of a job on a host; None where it has none, or one that is over."""
        use = self.hosts.get(host)
        return None if use is None else use.jobs.get(key)

    def has_part(self, job: Job, host: str, uid: str) -> bool:
        """Whether the job's attempt has a part with this uid on the host; one that is not over is found without a search."""
        run = job.run
        if run is None:
            return False
        part = self.part(job.key, host)
        return (part is not None and uid_of(run, part) == uid) or is_part(run, host, uid)

    def _index_holder(self, key: int, host: str, sign: int) -> None:
        if not host:
            return
        _note(self.copies[host], key, sign)
        if not self.copies[host]:
            del self.copies[host]

    def _index_decay(self, job: Job, sign: int) -> None:
        run = job.run
        if sign < 0 or run is None:
            self.decaying.pop(job.key, None)
            return
        change = next_change(decay for part in run.parts if part.state not in OVER for decay in part.decays)
        if change is not None:
            self.decaying[job.key] = run.dispatched + change

    def untouched(self, spec: Spec, count: int) -> None:
        """So many more elements of an array are pending, or (below 0) fewer."""
        self._count_waiting(spec, PEND, count)

    def array(self, array: Array, spec: Spec, sign: int) -> None:
        """Add (``sign`` 1) or subtract (-1) the untouched elements of an array."""
        if array.pending:
            self._count_waiting(spec, PEND, sign * len(array.pending))
        if array.held:
            self._count_waiting(spec, PSUSP, sign * len(array.held))
