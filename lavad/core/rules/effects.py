"""Effects: what agents must do now, derived from the state of a job alone, so that a restart of the master loses nothing.

Effects are idempotent: by (key, attempt, uid, number of the pending signal) an agent knows whether it has carried one out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypedDict

import msgspec
from msgspec.structs import replace

from config.model.values import Limits
from lavad.core.job.endpoint import Endpoint, parse_endpoint
from lavad.core.job.job import Attempt, End, Job, Part, PendingSignal
from lavad.core.job.resize import in_use, must_notify, uid_of
from lavad.core.job.roles import recalled, startable
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.states import OVER, SUSPENDED, JobState, PartState, TaskState

LOST_STATUS = 255 << 8
"""The wait status of a job whose end is not known."""


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """An action for the agent of one host."""

    host: str
    key: int
    attempt: int
    uid: str


class StartPart(Effect, frozen=True):
    """Start the part; of a gang, only prepare it."""

    two_phase: bool


class Ports(tuple[tuple[int, ...], ...]):
    """The ports of each host. A large job has one object for all its hosts, and effects are kept in sets: its hash is kept."""

    _hash = 0

    def __hash__(self) -> int:
        if not self._hash:
            self._hash = super().__hash__()
        return self._hash


class ReleasePart(Effect, frozen=True):
    """All hosts of the gang are prepared: start the prepared part."""

    root: Endpoint
    """Endpoint of the first host."""
    ports: Ports = Ports()
    """The ports that each host keeps free, () where none keeps any."""


class KillPart(Effect, frozen=True):
    """End the part now: its gang has ended, or it must not exist. ``leaves``: the gang continues without it.

    ``why``: what befell another host of it, for the first host, which reports to the user; ``status``: the job's wait status
    then.
    """

    leaves: bool = False
    why: str = ""
    status: int = 0


class StartTask(Effect, frozen=True):
    """Start one task of a running part, late or again."""

    rank: int
    number: int
    delay: float


class EndTask(Effect, frozen=True):
    """End one task of a running part, which starts again with others."""

    rank: int
    number: int


class FinishPart(Effect, frozen=True):
    """The tasks have decided the verdict of the job: end those that still run (``leave``: wait for them) and report the end."""

    status: int
    rank: int
    why: str
    leave: bool


class SignalPart(Effect, frozen=True):
    """A pending signal of a user or of the system: signal, kill sequence, checkpoint …"""

    pending: PendingSignal


class StopPart(Effect, frozen=True):
    """Stop or resume all processes of the part."""

    stopped: bool


class ChangeLimits(Effect, frozen=True):
    """The limits of a running job have changed."""

    limits: Limits


class ChangeText(Effect, frozen=True):
    """The output files or the mail settings of a running job have changed."""

    values: tuple[tuple[str, str], ...]


class CopyTo(Effect, frozen=True):
    """Copies of the job's checkpoints go to this host. ``port``: of it; another one is another effect."""

    holder: str
    port: int


class CopyGeneration(Effect, frozen=True):
    """Copy this host's part of a generation to the shared folder: all hosts of the job copy the same one."""

    generation: int


Hosts = tuple[tuple[str, int, int], ...]


class TellHosts(Effect, frozen=True):
    """The current hosts of a resizable job: (host, slots, node index). ``number``: run the notification command and report."""

    hosts: Hosts
    number: int = 0
    grow: bool = False
    changed: tuple[tuple[str, int], ...] = ()
    command: str = ""


def effects_due(job: Job, places: Iterable[int] | None = None) -> list[Effect]:
    """The effects that are due for a job with an attempt, in the order in which an agent must receive them.

    ``places``: those of its parts at these places alone.
    """
    run = job.run
    if run is None:
        return []
    due: list[Effect] = []
    chosen = [(place, run.parts[place]) for place in (range(len(run.parts)) if places is None else places)]
    # computed once, as each part is told about all
    links = links_of(run) if any(part.state is PartState.STARTING for _, part in chosen) else (Endpoint(), Ports())
    hosts = tuple((part.host, part.slots, part.node_index) for part in in_use(run)) if run.resizes else ()
    tasks = _tasks_due(job, run) if run.tasks else {}
    for place, part in chosen:
        due += _part_effects(job, run, part, place, links, tasks.get(place, ()))
        if hosts and part.state is PartState.RUNNING and not part.leaving and not _must_end(run, part, place):
            due.append(_tell_hosts(job, run, part, place, hosts))
    return due


def effects_of_end(job: Job) -> list[Effect]:
    """The effects for a job that has ended for the master while parts of it may still run (bkill -r)."""
    run = job.run
    live = () if run is None else (part for part in run.parts if part.state not in OVER and part.end is None)
    if run is None:
        return []
    return [KillPart(host=part.host, key=job.key, attempt=run.number, uid=uid_of(run, part)) for part in live]


def is_released(run: Attempt) -> bool:
    """Whether a gang was released."""
    return any(part.state in (PartState.STARTING, PartState.RUNNING) or part.end is not None for part in run.parts)


class _Address(TypedDict):
    host: str
    key: int
    attempt: int
    uid: str


def _part_effects(
    job: Job, run: Attempt, part: Part, place: int, links: tuple[Endpoint, Ports], tasks: Sequence[tuple[int, TaskRun]]
) -> list[Effect]:
    if part.state in OVER:
        return []
    name: _Address = {"host": part.host, "key": job.key, "attempt": run.number, "uid": uid_of(run, part)}
    if part.leaving:
        return [] if part.end is not None else [KillPart(leaves=True, **name)]
    if _must_end(run, part, place):
        why, status = _ended_for(run, place)
        return [KillPart(why=why, status=status, **name)]
    due: list[Effect] = []
    if part.state is PartState.OFFERED:
        due.append(StartPart(two_phase=len(run.parts) > 1 or run.elastic, **name))
    elif part.state is PartState.STARTING:
        due.append(ReleasePart(root=links[0], ports=links[1], **name))
    stopped = job.state in SUSPENDED
    running = part.state is PartState.RUNNING
    if running and stopped != part.stopped and job.state is not JobState.UNKWN:
        due.append(StopPart(stopped=stopped, **name))
    if run.judged and part.end is None and run.verdict is not None:
        end = run.verdict
        due.append(FinishPart(status=end.status, rank=end.first_rank, why=end.first_reason, leave=run.leave, **name))
    elif running:
        due += [_task_due(rank, task, name) for rank, task in tasks]
    if running:
        due += _changes_due(job, run, part, place, name)
    return due + [SignalPart(pending=pending, **name) for pending in run.pending_signals]


def _task_due(rank: int, task: TaskRun, name: _Address) -> Effect:
    if task.state is TaskState.WAITING:
        return StartTask(rank=rank, number=task.number, delay=task.delay, **name)
    return EndTask(rank=rank, number=task.number, **name)


def _changes_due(job: Job, run: Attempt, part: Part, place: int, name: _Address) -> list[Effect]:
    """What is new for a part that runs: its limits and text, and what is to be copied of its checkpoints."""
    due: list[Effect] = []
    if run.limits is not None:
        due.append(ChangeLimits(limits=run.limits, **name))
    if run.amended and place == 0:
        due.append(ChangeText(values=run.amended, **name))
    return due + _copies_due(job, run, part, place, name) if job.checkpoints is not None else due


def _copies_due(job: Job, run: Attempt, part: Part, place: int, name: _Address) -> list[Effect]:
    """What is to be copied of its checkpoints."""
    known, due = job.checkpoints, list[Effect]()
    if known is not None and known.holder not in ("", part.host) and place == 0:
        due.append(CopyTo(holder=known.holder, port=known.holder_port, **name))
    if run.copying >= 0 and part.end is None:
        due.append(CopyGeneration(generation=run.copying, **name))
    return due


def _tell_hosts(job: Job, run: Attempt, part: Part, place: int, hosts: Hosts) -> TellHosts:
    name: _Address = {"host": part.host, "key": job.key, "attempt": run.number, "uid": uid_of(run, part)}
    resize = run.resize
    if place or resize is None or not must_notify(run):
        return TellHosts(hosts=hosts, **name)
    changed = tuple((placed.host, placed.slots) for placed in resize.parts)
    return TellHosts(hosts=hosts, number=resize.number, grow=resize.grow, changed=changed, command=resize.command, **name)


def links_of(run: Attempt) -> tuple[Endpoint, Ports]:
    """What the parts of a gang must know of each other: (endpoint of the first host, ports of each host)."""
    return _links(tuple(part.address for part in run.parts))


@lru_cache(maxsize=32)
def _links(addresses: tuple[str, ...]) -> tuple[Endpoint, Ports]:
    """Kept, as each host of a large job is told of all."""
    ends = [parse_endpoint(address) for address in addresses]
    ports = Ports(end.ports for end in ends)
    return replace(ends[0], ports=()), ports if any(ports) else Ports()


def _must_end(run: Attempt, part: Part, place: int) -> bool:
    """Whether the part must end as its gang was refused or has ended. Leftovers of the first part are ended by its agent."""
    if run.refused:
        return True
    if run.verdict is None or part.end is not None or run.judged:
        return False
    if run.parts[0].end is not None:
        return place > 0
    # success of a part other than the first does not end the others: the first part has the verdict
    return bool(run.verdict.status or run.verdict.lost)


def _ended_for(run: Attempt, place: int) -> tuple[str, int]:
    """What the first part is ended for, which does not hear of it by the links between the hosts, and the job's status then."""
    verdict = run.verdict
    if place or verdict is None or run.parts[0].end is not None:
        return "", 0
    if verdict.lost:
        return verdict.lost, LOST_STATUS
    apart = (part for part in run.parts if part.end is not None and told_apart(part.end))
    return next(((said_by(part), part.end.status) for part in apart if part.end is not None), ("", 0))


def told_apart(end: End) -> bool:
    """Whether a part other than the first has failed by itself: for a link that it lost, or never had."""
    return bool(end.status and end.first_reason) and end.first_rank < 0 and os.WIFEXITED(end.status) and not end.lost


def said_by(part: Part) -> str:
    """What a host that ``told_apart`` says."""
    return f"host {part.host}: {part.end.first_reason}" if part.end is not None else ""


def _tasks_due(job: Job, run: Attempt) -> dict[int, list[tuple[int, TaskRun]]]:
    """Index of a part to the (rank, task) of those that need an order of their own there: to start, or to end."""
    ending = run.verdict is not None or run.is_ending
    found: dict[int, list[tuple[int, TaskRun]]] = {}
    for rank, task in () if ending or job.state is not JobState.RUN else (*startable(run), *recalled(run)):
        found.setdefault(task.place, []).append((rank, task))
    return found
