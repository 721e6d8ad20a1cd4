"""Random but legal histories of a cluster: ``Author.write`` makes the next events, chosen by two numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from config.model.cluster import HostConfig
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Array, End, Job, PendingSignal, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import OVER, STARTED, JobState, PartState, SignalKind, TermReason
from lavad.core.site.conf import Conf, Params
from lavad.core.site.host import Facts, Gpu

T = TypeVar("T")
HOSTS = ("h1", "h2", "h3")
SPECS = tuple(
    Spec(user=user, queue=queue, slots=slots, project=f"p{slots}")
    for user in ("ann", "bob")
    for queue in ("normal", "night")
    for slots in (1, 2)
)


class Author:
    """Writes legal events for one cluster; a verb that fits nothing gives no event."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.now = 1000.0
        self.uid = 0

    def opening(self, epoch: int = 0) -> list[ev.Event]:
        """How every history begins: a master, a configuration of three hosts, and two of them up."""
        conf = Conf(params=Params(max_job_array_size=50), hosts=tuple(HostConfig(name=name, slots=3) for name in HOSTS))
        started = ev.MasterStarted(at=self.now, epoch=epoch, incarnation="i1", host="m1")
        events: list[ev.Event] = [started, ev.Configured(at=self.now, conf=conf)]
        for host in HOSTS[:2]:
            facts = Facts(ncpus=4, max_mem=1000, gpus=(Gpu(uuid=f"GPU-{host}", memory=80),))
            events += [ev.HostJoined(at=self.now, host=host, facts=facts), ev.HostUp(at=self.now, host=host)]
        return events

    def write(self, verb: str, a: int, b: int) -> Sequence[ev.Event]:
        """Events for this verb; ``a`` and ``b`` choose among what is possible."""
        self.now += 0.25
        return VERBS[verb](self, a, b)

    def jobs(self, *states: JobState) -> list[Job]:
        return [job for job in self.cluster.jobs.rows.values() if not states or job.state in states]

    def running(self) -> list[Job]:
        return self.jobs(*STARTED)

    def arrays(self) -> list[Array]:
        return list(self.cluster.arrays.rows.values())

    def some_key(self, a: int, state: JobState) -> int | None:
        """A job in this state, or an untouched element that is."""
        keys = [job.key for job in self.jobs(state)]
        for array in self.arrays():
            ranges = array.pending if state is JobState.PEND else array.held
            keys += [key_of(array.job, index) for index in list(ranges)[:3]]
        return pick(keys, a)


def pick(choices: Sequence[T], number: int) -> T | None:
    return choices[number % len(choices)] if choices else None


def _spec(author: Author, a: int, key: int | None = None) -> tuple[list[ev.Event], int]:
    """A spec; for the job of this key one of the same user."""
    specs = [spec for spec in SPECS if key is None or spec.user == author.cluster.spec_of(key).user]
    spec = specs[a % len(specs)]
    number = author.cluster.spec_numbers.get(spec)
    if number is not None:
        return [], number
    number = author.cluster.next_spec
    return [ev.SpecAdded(at=author.now, spec=number, value=spec)], number


def submit(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    events, spec = _spec(author, a)
    job = author.cluster.next_job
    return [*events, ev.JobSubmitted(at=author.now, key=job, spec=spec, name=f"n{b % 3}", held=b % 5 == 0)]


def submit_many(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    """As a loop of bsub does."""
    events, spec = _spec(author, a)
    first = author.cluster.next_job
    return [
        *events,
        *(ev.JobSubmitted(at=author.now, key=job, spec=spec, name=f"n{job % 3}") for job in range(first, first + 2 + b % 5)),
    ]


def submit_array(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    events, spec = _spec(author, a)
    indices = Ranges.span(1 + b % 3, 2 + b % 7, 1 + a % 2) or Ranges.span(1, 1)
    text = f"arr[{indices.text()}]"
    submitted = ev.JobSubmitted(
        at=author.now,
        key=author.cluster.next_job,
        spec=spec,
        name="arr",
        indices=indices,
        spec_text=text,
        held=b % 4 == 0,
    )
    return [*events, submitted]


def _elements(author: Author, a: int, b: int, held: bool) -> tuple[int, Ranges] | None:
    arrays = [array for array in author.arrays() if (array.held if held else array.pending)]
    array = pick(arrays, a)
    if array is None:
        return None
    return array.job, (array.held if held else array.pending).first(1 + b % 4)[0]


def hold_elements(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    found = _elements(author, a, b, held=False)
    return [ev.ElementsHeld(at=author.now, key=found[0], elements=found[1], by="ann")] if found else []


def release_elements(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    found = _elements(author, a, b, held=True)
    return [ev.ElementsReleased(at=author.now, key=found[0], elements=found[1])] if found else []


def kill_elements(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    found = _elements(author, a, b, held=bool(b & 1))
    if not found:
        return []
    return [ev.ElementsKilled(at=author.now, key=found[0], elements=found[1], reason=TermReason.TERM_ADMIN)]


def split(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    found = _elements(author, a, b, held=bool(b & 1))
    return [ev.ElementSplit(at=author.now, key=key_of(found[0], found[1].max()))] if found else []


def hold(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = author.some_key(a, JobState.PEND)
    return [ev.JobHeld(at=author.now, key=key, by="bob")] if key else []


def release(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = author.some_key(a, JobState.PSUSP)
    return [ev.JobReleased(at=author.now, key=key, by="bob")] if key else []


def _any_key(author: Author, a: int) -> int | None:
    return pick([*author.cluster.jobs.rows, *author.cluster.arrays.rows], a)


def modify(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = _any_key(author, a)
    if key is None:
        return []
    job = author.cluster.get(key)
    if isinstance(job, Job) and job.run is not None:
        return []
    events, spec = _spec(author, b, key)
    changed = ev.JobModified(at=author.now, key=key, spec=spec, name=f"m{b % 3}", changes=("slots 2",), limit=b % 3)
    return [*events, changed]


def _waiting_key(author: Author, a: int) -> int | None:
    """A pending job or untouched element, or an array as a whole."""
    return pick([*author.cluster.arrays.rows], a // 3) if a % 3 == 0 else author.some_key(a, JobState.PEND)


def switch(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = _waiting_key(author, a)
    if key is None:
        return []
    events, spec = _spec(author, b, key)
    return [*events, ev.JobSwitched(at=author.now, key=key, spec=spec, queue="night")]


def move(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = _waiting_key(author, a)
    return [ev.JobMoved(at=author.now, key=key, position=float(b % 5 - 2))] if key else []


def dispatch(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    key = author.some_key(a, JobState.PEND)
    if key is None:
        return []
    cluster = author.cluster
    free = {host: cluster.slots_of(host) - cluster.use.hosts[host].slots for host in HOSTS}
    hosts = [host for host in HOSTS if free[host] > 0][: 1 + b % 2]
    if not hosts:
        return []
    author.uid += 1
    job = cluster.find_job(key)
    attempt = job.attempt + 1 if job is not None else 1
    parts = tuple(Placed(host=host, slots=1, reserved=(("mem", 10.5),)) for host in hosts)
    return [ev.JobDispatched(at=author.now, key=key, attempt=attempt, uid=f"u{author.uid}", parts=parts)]


def start_elements(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    """As the scheduler places elements of an array: some on one host, at most as many as it has slots, then some on the next."""
    array = pick([array for array in author.arrays() if array.pending], a)
    if array is None:
        return []
    cluster, waiting = author.cluster, list(array.pending)
    events: list[ev.Event] = []
    for host in HOSTS:
        for index in waiting[: max(0, min(1 + b % 4, cluster.slots_of(host) - cluster.use.hosts[host].slots))]:
            waiting.remove(index)
            author.uid += 1
            placed = (Placed(host=host, slots=1, reserved=(("mem", 10.5),) if b % 3 else ()),)
            key = key_of(array.job, index)
            events.append(ev.JobDispatched(at=author.now, key=key, attempt=1, uid=f"u{author.uid}", parts=placed))
    return events


def start_many(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    """The same of separate jobs, whose classes follow each other."""
    cluster = author.cluster
    waiting = sorted(
        (job for job in author.jobs(JobState.PEND) if not job.key >> 32 and not job.blocked), key=lambda job: job.spec
    )
    events: list[ev.Event] = []
    for host in HOSTS:
        for job in waiting[: max(0, min(1 + b % 4, cluster.slots_of(host) - cluster.use.hosts[host].slots))]:
            waiting.remove(job)
            author.uid += 1
            placed = (Placed(host=host, slots=1, reserved=(("mem", 10.5),) if b % 3 else ()),)
            uid, attempt = f"u{author.uid}", job.attempt + 1
            events.append(ev.JobDispatched(at=author.now, key=job.key, attempt=attempt, uid=uid, parts=placed))
    return events


def end_elements(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    """As a host tells of many ends: all that run are over, but each seventh with a failure."""
    ends = []
    for at, job in enumerate(author.jobs(JobState.RUN)):
        if job.run is None or len(job.run.parts) > 1 or job.run.parts[0].state in OVER:
            continue
        status = 256 if (at + b) % 7 == 0 else 0
        end = End(status=status, at=author.now, started=author.now - 1, utime=0.25 * at, max_mem=a)
        state = JobState.EXIT if status else JobState.DONE
        ends.append(ev.JobFinished(at=author.now, key=job.key, state=state, status=status, end=end))
    return ends


def part(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    """The next thing that happens to a part of a running job."""
    job = pick(author.running(), a)
    if job is None or job.run is None:
        return []
    live = [part for part in job.run.parts if part.state not in OVER]
    one = pick(live, b)
    if one is None:
        return _over(author, job, b)
    what: dict[str, Any] = {"at": author.now, "key": job.key, "attempt": job.run.number, "host": one.host}
    end = End(status=256 * (b % 3), at=author.now, started=author.now - 1, utime=0.5, max_mem=b % 1000)
    stopped = ev.PartStopped(**what, stopped=b % 2 == 0)
    choices: dict[PartState, list[ev.Event]] = {
        PartState.OFFERED: [
            ev.PartPrepared(**what, address="1.2.3.4:5"),
            ev.PartStarted(**what, pid=77),
            ev.PartFenced(**what),
        ],
        PartState.PREPARED: [ev.GangReleased(at=author.now, key=job.key, attempt=job.run.number)],
        PartState.STARTING: [ev.PartStarted(**what, pid=78), ev.PartRefused(**what, code="cwd", why="no such folder")],
        PartState.RUNNING: [ev.PartEnded(**what, end=end), ev.PartGone(**what), ev.PartFenced(**what), stopped],
    }
    return [choices[one.state][b // 3 % len(choices[one.state])]]


def _over(author: Author, job: Job, b: int) -> Sequence[ev.Event]:
    if b % 3 == 0:
        again = JobState.PSUSP if b % 2 else JobState.PEND
        wait = author.now + 5
        return [ev.JobRequeued(at=author.now, key=job.key, state=again, reason=b % 2, avoid=("h1",), not_before=wait)]
    return _finish(author, job, b)


def _finish(author: Author, job: Job, b: int) -> Sequence[ev.Event]:
    if b % 2:
        return [ev.JobFinished(at=author.now, key=job.key, state=JobState.DONE, end=End(at=author.now))]
    reason = TermReason.TERM_RUNLIMIT
    return [ev.JobFinished(at=author.now, key=job.key, state=JobState.EXIT, status=9, reason=reason, why="too long")]


def finish(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    job = pick(author.jobs(), a)
    return _finish(author, job, b) if job else []


def pending(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    job = pick(author.running(), a)
    if job is None or job.run is None:
        return []
    if job.run.pending_signals and b % 2:
        number = job.run.pending_signals[0].number
        return [ev.SignalHandled(at=author.now, key=job.key, attempt=job.run.number, number=number)]
    kind = (SignalKind.KILL, SignalKind.SIGNAL, SignalKind.CHECKPOINT)[b % 3]
    return [
        ev.SignalRequested(at=author.now, key=job.key, pending=PendingSignal(kind=kind, at=author.now, by="ann", signal=b % 16))
    ]


def suspend(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    job = pick(author.jobs(JobState.RUN, JobState.USUSP, JobState.SSUSP, JobState.UNKWN), a)
    if job is None:
        return []
    if job.state is JobState.RUN:
        if b % 3 == 0:
            return [ev.JobLost(at=author.now, key=job.key, host="h1")]
        return [ev.JobSuspended(at=author.now, key=job.key, state=JobState.USUSP if b % 2 else JobState.SSUSP)]
    if job.state is JobState.UNKWN:
        return [ev.JobFound(at=author.now, key=job.key, state=JobState.RUN)]
    return [ev.JobResumed(at=author.now, key=job.key)]


def checkpoint(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    job = pick(author.running(), a)
    if job is None or job.run is None:
        return []
    if b % 4 == 3:
        if a % 2:
            number = job.run.number
            return [
                ev.CheckpointPeriodSet(at=author.now, key=job.key, attempt=number, period=60 + b, cost=2.5, between_failures=1e6)
            ]
        number = job.run.number
        if b % 8 == 7:
            if a % 4 == 2:
                return [ev.CheckpointHolder(at=author.now, key=job.key, attempt=number, host=HOSTS[b % len(HOSTS)])]
            return [ev.CheckpointStaged(at=author.now, key=job.key, attempt=number, generation=b % 9, size=b << 10)]
        return [ev.CheckpointFailed(at=author.now, key=job.key, attempt=number, seconds=2.0, why="the disk is full")]
    return [
        ev.CheckpointMade(at=author.now, key=job.key, attempt=job.run.number, generation=b % 9, seconds=1.0 * b, size=b << 20)
    ]


def host(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    name = HOSTS[a % len(HOSTS)]
    choices = [
        ev.HostUp(at=author.now, host=name),
        ev.HostDown(at=author.now, host=name),
        ev.HostSwitched(at=author.now, host=name, closed=a % 2 == 0, by="root", comment="disk"),
        ev.HostJoined(at=author.now, host=name, facts=Facts(ncpus=1 + b % 8)),
        ev.GpuSwitched(at=author.now, host=name, gpu=f"GPU-{a % 2}", closed=b % 3 > 0, by="root", comment="hot"),
    ]
    return [choices[b % len(choices)]]


def queue(author: Author, a: int, b: int) -> Sequence[ev.Event]:
    return [ev.QueueSwitched(at=author.now, queue="normal", open=a % 2 == 0, active=b % 2 == 0, by="root")]


VERBS: dict[str, Callable[[Author, int, int], Sequence[ev.Event]]] = {
    verb.__name__: verb
    for verb in (
        submit,
        submit_many,
        submit_array,
        hold_elements,
        release_elements,
        kill_elements,
        split,
        hold,
        release,
        modify,
        switch,
        move,
        dispatch,
        start_elements,
        start_many,
        end_elements,
        part,
        finish,
        pending,
        suspend,
        checkpoint,
        host,
        queue,
    )
}

_NUMBER = st.integers(0, 9999)
_OFTEN = ("submit_array", "dispatch", "dispatch", "part", "part", "part")
steps = st.lists(st.tuples(st.sampled_from([*VERBS, *_OFTEN]), _NUMBER, _NUMBER, st.booleans()), min_size=10, max_size=40)
"""(verb, a, b, whether a batch ends here)."""
