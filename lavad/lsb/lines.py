"""The lines of lsb.events and lsb.acct for each event; ``write`` formats a record, ``read`` parses it.

Rule: the lines of an event are registered here once, with ``@logs``; other events have no line.
"""

from __future__ import annotations

import pwd
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from config.model.values import LOAD_INDICES
from lavad.core import events as ev
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Job
from lavad.core.job.spec import NO_TEXT, JobText, Spec
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.states import JobState, SignalKind
from lavad.lsb.write import (
    HOLD,
    Field,
    OfClass,
    asked_hosts,
    exit_info,
    job_finish,
    job_start,
    job_status,
    killed_waiting,
    limits_of,
    options_of,
    record,
    signal_name,
)
from lavad.store.asked import Find
from lavad.store.read import Reader

EVENTS, ACCOUNTS = "lsb.events", "lsb.acct"
MOST_TEXT = 16 << 20
"""Bytes of texts of jobs, as the store has them, that are read at once, unless one has more: a command alone may have 1 MiB."""
KEPT_OWNERS = 100_000
_QUEUE_CODES = {"qopen": 1, "qclose": 2, "qact": 3, "qinact": 4}
_DONE_POST = 0x80
"""Added to a job's state once its post-execution command is done as well."""


@lru_cache(maxsize=4096)
def uid_of(user: str) -> int:
    """A user's uid; -1 where this host does not know the user."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return -1


class Earlier:
    """What later lines need from earlier ones; for jobs from before this process started, from the job's last record."""

    def __init__(self) -> None:
        self.owners: OrderedDict[int, str] = OrderedDict()
        """Of job ids; the newest KEPT_OWNERS."""
        self.first_hosts: dict[int, str] = {}
        """Key to the first host of what runs."""

    def own(self, job: int, user: str) -> None:
        """A job or array of this user; arrays are never dropped otherwise, as the end of one has no event."""
        self.owners[job] = user
        if len(self.owners) > KEPT_OWNERS:
            self.owners.popitem(last=False)


def lines_of(reader: Reader, events: Sequence[ev.Event], earlier: Earlier) -> Iterator[tuple[str, str]]:
    """The lines of some events, in order: the file and the line each. The records that they need are read in a few queries."""
    for some in _in_pieces(reader, events):
        yield from Lines(reader, some, earlier).made()


def _in_pieces(reader: Reader, events: Sequence[ev.Event]) -> Iterator[Sequence[ev.Event]]:
    """So many at a time that the texts of their jobs are few bytes."""
    sizes = reader.text_sizes({job_of(event.key) for event in events if isinstance(event, _WITH_TEXT)})
    if sum(sizes.values()) <= MOST_TEXT:
        yield events
        return
    begin, held = 0, 0
    read: set[int] = set()
    for place, event in enumerate(events):
        job = job_of(event.key) if isinstance(event, _WITH_TEXT) else 0
        size = 0 if job in read else sizes.get(job, 0)
        if held and held + size > MOST_TEXT:
            yield events[begin:place]
            begin, held, size = place, 0, sizes.get(job, 0)
            read.clear()
        held += size
        read.add(job)
    yield events[begin:]


_WITH_TEXT = (ev.JobSubmitted, ev.PartStarted, ev.JobFinished, ev.JobModified, ev.ElementsKilled)


class Lines:
    """The lines of some events, for whose jobs all texts are read at once."""

    def __init__(self, reader: Reader, events: Sequence[ev.Event], earlier: Earlier) -> None:
        self.earlier = earlier
        self._told = events
        self._ended: list[Job] = []
        """Whose lines of lsb.acct are made next: one by one, as all of an array may have a long command."""
        jobs = [event for event in events if isinstance(event, ev.JobEvent)]
        keys = {event.key for event in jobs if isinstance(event, (ev.JobFinished, ev.PartStarted))}
        keys |= {key_of(e.key, index) for e in jobs if isinstance(e, ev.ElementsKilled) for index in e.elements}
        self._texts = reader.texts({job_of(event.key) for event in jobs if isinstance(event, _WITH_TEXT)})
        self.finished = {job.key: job for job in reader.finished_jobs(Find(keys=tuple(keys)))} if keys else {}
        numbers = {event.spec for event in jobs if isinstance(event, (ev.JobSubmitted, ev.JobModified))}
        numbers |= {job.spec for job in self.finished.values()}
        self._specs = reader.specs(sorted(numbers))
        self._alike: dict[tuple[int, int], OfClass] = {}
        """Of specs and job ids."""

    def made(self) -> Iterator[tuple[str, str]]:
        """The file and the line each."""
        for event in self._told:
            log = _LOGS.get(type(event))
            line = log(self, event) if log is not None else ""
            if line:
                yield EVENTS, line
            for job in self._ended:
                yield ACCOUNTS, self._account(job)
            self._ended.clear()

    def spec(self, number: int) -> Spec:
        """A spec; one of an unknown user where the store has it no longer."""
        return self._specs.get(number) or Spec(user="?", queue="?")

    def text(self, key: int) -> JobText:
        """The text of a job, array or element."""
        return self._texts.get(job_of(key)) or NO_TEXT

    def account(self, job: Job | None) -> None:
        """Have lsb.acct get the line of a job that has finished."""
        if job is not None:
            self._ended.append(job)

    def _account(self, job: Job) -> str:
        classed = job.spec, job_of(job.key)
        alike = self._alike.get(classed)
        if alike is None:
            spec = self.spec(job.spec)
            alike = self._alike[classed] = OfClass(spec, self.text(job.key), uid_of(spec.user))
        return job_finish(job, alike)


Log = TypeVar("Log", bound=Callable[[Lines, Any], str])
_LOGS: dict[type[ev.Event], Callable[[Lines, Any], str]] = {}


def logs(*kinds: type[ev.Event]) -> Callable[[Log], Log]:
    """Register the function that makes the lines of these events in lsb.events, "" for none."""

    def register(log: Log) -> Log:
        _LOGS.update(dict.fromkeys(kinds, log))
        return log

    return register


@logs(ev.JobSubmitted)
def _job_new(lines: Lines, event: ev.JobSubmitted) -> str:
    """JOB_NEW."""
    spec, text = lines.spec(event.spec), lines.text(event.key)
    lines.earlier.own(event.key, spec.user)
    uid = uid_of(spec.user)
    name = event.spec_text or event.name
    depend = event.depend.text if event.depend is not None else ""
    checkpoint = spec.checkpoint
    hosts = asked_hosts(spec)
    fields: list[Field] = [
        job_of(event.key), uid, options_of(spec, text, name, bool(depend)), spec.slots, int(event.at), int(spec.begin),
        int(spec.deadline), 0, checkpoint.period if checkpoint is not None else 0, 0, spec.user, *limits_of(spec.limits),
        spec.run_host or spec.cpu_host, 1.0, text.umask, spec.queue, spec.resreq, spec.from_host, text.cwd,
        checkpoint.folder if checkpoint is not None else "", text.input, text.output, text.error, text.home,
        f"{int(event.at)}.{job_of(event.key)}", len(hosts), *hosts, depend, "", name, text.command, 0, text.pre_exec,
        text.mail_user, spec.project, 0, spec.max_slots, "", text.login_shell, "", spec.user_group, "",
        HOLD if event.held else 0, 0, "", "", "", spec.priority, spec.reservation, spec.group, spec.service_class, "",
        text.warn_action, text.warn_before or -1, -1, "", 0, spec.app, text.post_exec, -1, spec.requeue, spec.resize_command,
        text.description,
    ]  # fmt: skip
    return record("JOB_NEW", event.at, fields)


@logs(ev.JobModified)
def _job_modify(lines: Lines, event: ev.JobModified) -> str:
    """JOB_MODIFY2: the parameters as they are now."""
    spec, text, uid = lines.spec(event.spec), lines.text(event.key), uid_of(event.by)
    index = index_of(event.key)
    name = f"{job_of(event.key)}[{index}]" if index else str(job_of(event.key))
    depend = event.depend.text if event.depend is not None else spec.dependency
    checkpoint = spec.checkpoint
    hosts = asked_hosts(spec)
    fields: list[Field] = [
        name, options_of(spec, text, event.name, bool(depend)), 0, 0, 0, uid, event.by, int(event.at), text.umask,
        spec.slots, int(spec.begin), int(spec.deadline), 0, 0, event.name, spec.queue, len(hosts), *hosts, spec.resreq,
        *limits_of(spec.limits), spec.run_host or spec.cpu_host, depend, "", text.home, text.input, text.output, text.error,
        text.command, "", "", checkpoint.period if checkpoint is not None else 0,
        checkpoint.folder if checkpoint is not None else "", 0, "", spec.from_host, text.cwd, text.pre_exec, text.mail_user,
        spec.project, 0, spec.max_slots, text.login_shell, "", spec.user_group,
    ]  # fmt: skip
    return record("JOB_MODIFY2", event.at, fields)


@logs(ev.JobDispatched)
def _job_start(lines: Lines, event: ev.JobDispatched) -> str:
    """JOB_START: a host name for each slot."""
    lines.earlier.first_hosts[event.key] = event.parts[0].host if event.parts else ""
    hosts = [part.host for part in event.parts for _ in range(slots_in(part))]
    return job_start(event.key, event.at, hosts)


@logs(ev.PartStarted)
def _job_execute(lines: Lines, event: ev.PartStarted) -> str:
    """JOB_START_ACCEPT and JOB_EXECUTE, only for the first host, as in LSF."""
    if lines.earlier.first_hosts.get(event.key, event.host) != event.host:
        return ""
    finished = lines.finished.get(event.key)
    user = lines.earlier.owners.get(job_of(event.key)) or (lines.spec(finished.spec).user if finished is not None else "")
    uid, home = uid_of(user), lines.text(event.key).home
    job, index = job_of(event.key), index_of(event.key)
    accepted = record("JOB_START_ACCEPT", event.at, [job, event.pid, event.pid, index])
    fields: list[Field] = [job, uid, event.pid, event.cwd, home, user, event.pid, index, "", -1, "", "", ""]
    return accepted + record("JOB_EXECUTE", event.at, fields)


@logs(ev.JobFinished)
def _job_finished(lines: Lines, event: ev.JobFinished) -> str:
    """JOB_STATUS, after a JOB_SIGNAL where somebody killed it before it ran; and the line of lsb.acct."""
    lines.earlier.first_hosts.pop(event.key, None)
    if event.key == job_of(event.key):
        lines.earlier.owners.pop(event.key, None)
    job = lines.finished.get(event.key)
    end = event.end or (job.run.verdict if job is not None and job.run is not None else None)
    lines.account(job)
    line = killed_waiting(event.key, event.at, event.by, uid_of(event.by)) if event.by else ""
    line += job_status(event.key, event.at, int(event.state), 0, end, event.status, exit_info(event.reason), event.ended)
    if event.state is JobState.DONE:
        line += job_status(event.key, event.at, int(JobState.DONE) | _DONE_POST)
    return line


@logs(ev.ElementsKilled)
def _elements_killed(lines: Lines, event: ev.ElementsKilled) -> str:
    line = ""
    for index in event.elements:
        key = key_of(event.key, index)
        lines.account(lines.finished.get(key))
        line += job_status(key, event.at, int(event.state), why=exit_info(event.reason))
        if event.state is JobState.DONE:
            line += job_status(key, event.at, int(JobState.DONE) | _DONE_POST)
    return line


@logs(ev.ElementsHeld, ev.ElementsReleased)
def _elements(_: Lines, event: ev.ElementsHeld | ev.ElementsReleased) -> str:
    state = JobState.PSUSP if isinstance(event, ev.ElementsHeld) else JobState.PEND
    return "".join(job_status(key_of(event.key, index), event.at, int(state)) for index in event.elements)


@logs(ev.JobHeld, ev.JobReleased, ev.JobResumed, ev.JobLost)
def _state(_: Lines, event: ev.JobEvent) -> str:
    states = {ev.JobHeld: JobState.PSUSP, ev.JobReleased: JobState.PEND, ev.JobResumed: JobState.RUN, ev.JobLost: JobState.UNKWN}
    return job_status(event.key, event.at, int(states[type(event)]))


@logs(ev.JobSuspended, ev.JobFound)
def _state_of_event(_: Lines, event: ev.JobSuspended | ev.JobFound) -> str:
    return job_status(event.key, event.at, int(event.state))


@logs(ev.JobRequeued)
def _job_requeued(_: Lines, event: ev.JobRequeued) -> str:
    return job_status(event.key, event.at, int(event.state), event.reason)


@logs(ev.JobRevived)
def _job_revived(_: Lines, event: ev.JobRevived) -> str:
    return record("JOB_REQUEUE", event.at, [job_of(event.key), index_of(event.key)])


@logs(ev.JobSwitched)
def _job_switched(_: Lines, event: ev.JobSwitched) -> str:
    return record("JOB_SWITCH", event.at, [0, job_of(event.key), event.queue, index_of(event.key), event.by])


@logs(ev.CheckpointMade)
def _checkpoint_made(_: Lines, event: ev.CheckpointMade) -> str:
    return record("CHKPNT", event.at, [job_of(event.key), 0, 0, 1, 0, index_of(event.key)])


@logs(ev.SignalRequested)
def _job_signal(_: Lines, event: ev.SignalRequested) -> str:
    """JOB_SIGNAL or MIG for a pending signal; "" for kinds that LSF does not log."""
    uid = uid_of(event.pending.by)
    pending, job, index = event.pending, job_of(event.key), index_of(event.key)
    if pending.kind is SignalKind.MIGRATE:
        return record("MIG", event.at, [job, 0, uid, index, pending.by])
    if pending.kind is SignalKind.CHECKPOINT or not pending.by:
        return ""
    return record("JOB_SIGNAL", event.at, [job, uid, 0, signal_name(pending), index, pending.by])


@logs(ev.JobMoved)
def _job_move(_: Lines, event: ev.JobMoved) -> str:
    """JOB_MOVE: the place counts from the top (1) or the bottom (2)."""
    uid = uid_of(event.by)
    fields: list[Field] = [uid, job_of(event.key), event.place, 1 if event.top else 2, index_of(event.key), event.by]
    return record("JOB_MOVE", event.at, fields)


@logs(ev.MessagePosted)
def _job_message(_: Lines, event: ev.MessagePosted) -> str:
    """JOB_EXT_MSG."""
    uid = uid_of(event.message.by)
    message = event.message
    size = message.size or len(message.body)
    fields: list[Field] = [
        job_of(event.key), index_of(event.key), message.number, uid, size, int(message.at), int(size > 0),
        message.text, message.by,
    ]  # fmt: skip
    return record("JOB_EXT_MSG", event.at, fields)


@logs(ev.MasterStarted)
def _master_started(_: Lines, event: ev.MasterStarted) -> str:
    started = record("MBD_START", event.at, [event.host, "lava", 0, 0])
    return started + record("LOAD_INDEX", event.at, [len(LOAD_INDICES), *LOAD_INDICES])


@logs(ev.QueueSwitched)
def _queue_switched(_: Lines, event: ev.QueueSwitched) -> str:
    code = _QUEUE_CODES.get(event.what) or ((1 if event.open else 2) if event.active else 4)
    return record("QUEUE_CTRL", event.at, [code, event.queue, uid_of(event.by), event.by, event.comment])


@logs(ev.HostSwitched)
def _host_switched(_: Lines, event: ev.HostSwitched) -> str:
    fields = [2 if event.closed else 1, event.host, uid_of(event.by), event.by, event.comment]
    return record("HOST_CTRL", event.at, fields)
