"""bswitch of pending and started jobs to another queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import Chunking, decide_each
from lavad.core.decide.base.chunk import leave_chunk
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.modify.change import describe
from lavad.core.decide.submit.defaults import apply_host_spec, apply_queue, leave_queue_reruns
from lavad.core.decide.submit.gpus import adopt_gpus, settle_gpus
from lavad.core.decide.submit.memory import settle_memory
from lavad.core.decide.submit.queue_rules import NO_USER_SLOTS, check_against_queue, choose_queue, leave_queue
from lavad.core.decide.submit.submit import known_names
from lavad.core.job.job import Array, Job
from lavad.core.job.resize import slots_of
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, Refused, Switch
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.resreq.shown import shown
from lavad.core.lang.states import OVER, JobState
from lavad.core.rules.checkpoint_folder import for_other_hosts
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.per_slot import reserved

ANY_TIME = datetime(1970, 1, 1)  # noqa: DTZ001 - nothing that a switch checks has a time


@decides(Switch)
def switch(cluster: Cluster, ask: Switch, caller: Caller, now: float) -> Decided:
    """Switch the jobs that the queue accepts; for others the answer says why not. Raises Refused."""
    if ask.queue not in cluster.queue_conf:
        raise Refused(f"{ask.queue}: No such queue")
    events: list[ev.Event] = []
    known: dict[tuple[int, bool, bool], Spec | str] = {}

    def move(record: Job | Array, key: int, now: float) -> list[ev.Event] | str:
        if ask.queue not in cluster.queue_conf:
            return f"{ask.queue}: No such queue"
        started = isinstance(record, Job) and record.run is not None
        kind = record.spec, started, isinstance(record, Job) and record.checkpoint >= 0
        spec = known.get(kind)
        if spec is None:
            spec = known[kind] = spec_in_queue(cluster, cluster.specs.rows[record.spec], ask.queue, caller, kind[1:])
        if isinstance(spec, str):
            return spec
        number = spec_number(cluster, spec, events, now)
        switched = ev.JobSwitched(at=now, key=key, spec=number, queue=ask.queue, by=caller.user)
        return [switched, *(_started(cluster, record, spec, number, caller, now) if isinstance(record, Job) else ())]

    room = _Room(cluster, ask.queue)

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        return room.taken(job, lambda: move(job, job.key, now))

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        if len(elements) == len(array.pending) + len(array.held):
            return move(array, array.job, now)
        done: list[ev.Event] = []
        for index in elements:
            answer = move(array, index << 32 | array.job, now)
            if isinstance(answer, str):
                return answer
            done += answer
        return done

    chunking = Chunking(before=events, begin=room.begin, splits=True)
    return decide_each(cluster, ask.jobs, caller, now, on_job, on_elements, chunking)


class _Room:
    """The slots that started jobs may still bring to a queue by its UJOB_LIMIT. LSF looks at it before all else."""

    def __init__(self, cluster: Cluster, queue: str) -> None:
        self._cluster = cluster
        self._queue = queue
        self._ledger = Ledger(cluster)
        self._taken: Counter[str] = Counter()
        """Slots that this chunk of the command has brought to the queue, and that the cluster does not count yet, by user."""

    def begin(self) -> None:
        """A chunk is decided, perhaps again; what the ones before it have brought is counted."""
        self._taken.clear()

    def taken(self, job: Job, move: Callable[[], list[ev.Event] | str]) -> list[ev.Event] | str:
        """What ``move`` gives for a job, or that a started one has no room there."""
        conf = self._cluster.queue_conf.get(self._queue)
        spec = self._cluster.specs.rows[job.spec]
        if job.run is None or spec.queue == self._queue or conf is None or conf.ujob_limit is None:
            return move()
        slots = slots_of(job.run)
        used = self._ledger.pair_slots(self._queue, spec.user) + self._taken[spec.user]
        if used + slots > conf.ujob_limit:
            return NO_USER_SLOTS
        moved = move()
        if not isinstance(moved, str):
            self._taken[spec.user] += slots
        return moved


def _started(cluster: Cluster, job: Job, spec: Spec, number: int, caller: Caller, now: float) -> list[ev.Event]:
    """What follows for a started job: one that waits in a chunk leaves it.

    With BSWITCH_MODIFY_RUSAGE others reserve from now on what they and the new queue ask for together.
    """
    if job.state is JobState.WAIT:
        return [leave_chunk(job, caller.user, now, JobState.PEND)]
    if job.run is None or not cluster.conf.params.bswitch_modify_rusage:
        return []
    old, conf = cluster.specs.rows[job.spec], cluster.conf
    parts = [part for part in job.run.parts if part.state not in OVER and part.slots]
    amounts = tuple((part.host, reserved(part, spec, old, conf)) for part in parts)
    if amounts == tuple((part.host, reserved(part, old, old, conf)) for part in parts):
        return []
    changes = (describe("R", shown(cluster.queue_conf[spec.queue].res_req, spec.resreq)),)
    return [ev.JobModified(at=now, key=job.key, spec=number, name=job.name, by=caller.user, changes=changes, reserved=amounts)]


def spec_in_queue(cluster: Cluster, old: Spec, name: str, caller: Caller, past: tuple[bool, bool]) -> Spec | str:
    """The spec of a job once it is in another queue, or why it may not go there. ``past``: it runs, it has made a checkpoint.

    A rerunnable queue, or one with CHKPNT, makes jobs that wait so until they leave it. One that runs has no lease, so that it
    may not run again by itself. A job that waits asks for the GPUs that it and the queue's GPU_REQ say together, and has the
    limits that it would have had if it had been submitted there, but the slots that it had; one that runs keeps its own (LSF:
    bswitch). Which limits a job has named is not recorded: what its queue would have given it anyway is taken for the queue's.
    """
    queue, (started, has_checkpoint) = cluster.queue_conf[name], past
    known, ran = known_names(cluster), 0.0 if started else None
    draft = JobDraft(spec=old, text=JobText(command=""), conf=cluster.conf, local=ANY_TIME, known_hosts=known, ran=ran)
    draft.has_checkpoint = has_checkpoint
    try:
        choose_queue(cluster, (name,), draft, caller)
        adopt_gpus(draft)
        if not started:
            leave_queue_reruns(draft, cluster.queue_conf.get(old.queue))
            leave_queue(cluster, draft, name)
        draft.set_spec(queue=name)
        if not started:
            settle_gpus(draft, queue)
            apply_queue(draft, queue)
            draft.set_spec(slots=old.slots, max_slots=old.max_slots)
            if old.interactive:
                draft.set_spec(rerunnable=False, checkpoint=None)
            settle_memory(cluster, draft)
        check_against_queue(draft, queue)
        if started:
            draft.set_spec(limits=old.limits)
        else:
            apply_host_spec(draft, queue)
    except Refused as refusal:
        return refusal.text
    return for_other_hosts(draft.spec)
