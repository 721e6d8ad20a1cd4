"""Parses lines of lsb.events and lsb.acct, of lava or of LSF, into fields and events.

Rule: names and order of fields are as documented by IBM; a truncated line raises IndexError or ValueError.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.job.job import Attempt, End, Job, Outcome, Part, PendingSignal, Placed
from lavad.core.job.message import Message
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import key_of
from lavad.core.lang.states import FINAL, JobState, SignalKind, TermReason
from lavad.lsb.write import HOLD, REASON_OF

_FIELD = re.compile(r'"((?:[^"]|"")*)"|(\S+)')
_RUSAGE = 19
_HOST_RUSAGE = 5
"""Fields of hostRusage: host, memory, swap, user and system time."""
_DONE_BY_POST = 0x80 | 0x100
_OPENED = ("", "qopen", "qclose", "qact", "qinact")


Runs = dict[int, ev.JobDispatched]


class Fields:
    """The fields of one line, read from left to right; ``kind``: the first field is the kind of the record."""

    def __init__(self, line: str, kind: bool = True) -> None:
        found = list(_FIELD.finditer(line))
        self._words = [match[1].replace('""', '"') if match[2] is None else match[2] for match in found]
        self._texts = [match[2] is None for match in found]
        self.kind = self._words[0] if kind and self._words else ""
        self._at = int(kind)

    def text(self) -> str:
        """The next field."""
        self._at += 1
        return self._words[self._at - 1]

    def number(self) -> int:
        """The next field as a whole number."""
        return int(float(self.text()))

    def real(self) -> float:
        """The next field as a number; -1 (not measured) reads as 0."""
        return max(float(self.text()), 0.0)

    def is_text(self) -> bool:
        """Whether the next field is in quotes."""
        return self._texts[self._at]

    def skip(self, count: int) -> None:
        """Leave fields out."""
        self._at += count

    def left(self) -> int:
        """How many there are still."""
        return len(self._words) - self._at

    def hosts(self) -> list[str]:
        """A counted list of hosts; ``4*hostA`` counts once and stands for four."""
        found: list[str] = []
        for _ in range(self.number()):
            count, star, name = self.text().partition("*")
            found += [name] * int(count) if star and count.isdigit() else [count + star + name]
        return found


def placed(hosts: list[str]) -> tuple[Placed, ...]:
    """A host for each slot -> a part for each host."""
    counts: dict[str, int] = {}
    for host in hosts:
        counts[host] = counts.get(host, 0) + 1
    return tuple(Placed(host, slots) for host, slots in counts.items())


def _limits(fields: Fields) -> Limits:
    names = ("cpu", "file", "data", "stack", "core", "mem", "", "", "swap", "run", "processes")
    values = []
    while not fields.is_text():  # their number differs between releases of LSF
        values.append(fields.number())
    return Limits(**{name: value for name, value in zip(names, values, strict=False) if name and value >= 0})


def job_new(fields: Fields) -> tuple[int, float, Spec, JobText, str, bool]:
    """The fields of JOB_NEW after its time: (job, submission time, spec, text, name or array spec, whether it is held)."""
    job = fields.number()
    fields.skip(2)
    slots, submitted, begin, deadline = fields.number(), fields.number(), fields.number(), fields.number()
    fields.skip(3)
    user, limits = fields.text(), _limits(fields)
    run_host = fields.text()
    fields.skip(2)
    queue, resreq, from_host, cwd = fields.text(), fields.text(), fields.text(), fields.text()
    fields.skip(1)
    files = [fields.text() for _ in range(3)]
    home = fields.text()
    fields.skip(1)
    asked, dependency = fields.hosts(), fields.text()
    fields.skip(1)
    name, command = fields.text(), fields.text()
    for _ in range(fields.number()):
        fields.skip(3)
    pre_exec, mail, project = fields.text(), fields.text(), fields.text()
    fields.skip(1)
    most = fields.number()
    fields.skip(5)
    held = fields.left() > 0 and bool(fields.number() & HOLD)
    spec = Spec(
        user=user, queue=queue, slots=max(slots, 1), max_slots=max(most, slots, 1), project=project, resreq=resreq,
        hosts=tuple(asked), limits=limits, run_host=run_host, begin=begin, deadline=deadline, dependency=dependency,
        from_host=from_host,
    )  # fmt: skip
    text = JobText(
        command=command, cwd=cwd, home=home, input=files[0], output=files[1], error=files[2], mail_user=mail, pre_exec=pre_exec
    )
    return job, float(submitted), spec, text, name or command, held


def _job_start(at: float, fields: Fields, runs: Runs) -> Iterator[ev.Event]:
    job = fields.number()
    fields.skip(4)
    hosts = fields.hosts()
    fields.skip(4)
    key = key_of(job, fields.number())
    attempt = runs[key].attempt + 1 if key in runs else 1
    runs[key] = ev.JobDispatched(at=at, key=key, attempt=attempt, uid="", parts=placed(hosts))
    yield runs[key]


def _job_execute(at: float, fields: Fields, runs: Runs) -> Iterator[ev.Event]:
    job = fields.number()
    fields.skip(2)
    cwd = fields.text()
    fields.skip(2)
    pid, key = fields.number(), key_of(job, fields.number())
    run = runs.get(key)
    if run is not None and run.parts:
        yield ev.PartStarted(at=at, key=key, attempt=run.attempt, host=run.parts[0].host, pid=pid, started=at, cwd=cwd)


def _job_status(at: float, fields: Fields, runs: Runs) -> Iterator[ev.Event]:
    job, bits, reason, _, cpu, over = (
        fields.number(), fields.number(), fields.number(), fields.number(), fields.real(), fields.number(),
    )  # fmt: skip
    end = End(at=at, utime=cpu)
    if fields.number():
        utime, stime, memory = fields.real(), fields.real(), fields.real()
        end = End(at=at, utime=utime, stime=stime, max_mem=int(memory))
        fields.skip(_RUSAGE - 3)
    fields.skip(1)
    status, key = fields.number(), key_of(job, fields.number())
    info = fields.number() if fields.left() else 0
    if bits & _DONE_BY_POST:
        return
    state = JobState(bits)
    if state in FINAL:
        why, ended = REASON_OF.get(info, TermReason.NONE), float(over) if 0 < over < at else 0.0
        yield ev.JobFinished(at=at, key=key, state=state, status=status, reason=why, end=end, ended=ended)
    elif state in (JobState.USUSP, JobState.SSUSP):
        yield ev.JobSuspended(at=at, key=key, state=state)
    elif state is JobState.RUN:
        yield ev.JobResumed(at=at, key=key)
    elif state is JobState.PSUSP:
        yield ev.JobHeld(at=at, key=key)
    elif state is JobState.UNKWN:
        yield ev.JobLost(at=at, key=key, host="")
    elif state is JobState.PEND and key in runs:
        yield ev.JobRequeued(at=at, key=key, reason=reason)
    elif state is JobState.PEND:
        yield ev.JobReleased(at=at, key=key)


def _job_signal(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    job = fields.number()
    fields.skip(2)
    name, key, by = fields.text().removeprefix("SIG"), key_of(job, fields.number()), fields.text()
    number = getattr(signal, f"SIG{name}", 0)
    kind = SignalKind.SIGNAL if number and name != "KILL" else SignalKind.KILL
    if "REQUEUE" in name:
        kind = SignalKind.REQUEUE
    yield ev.SignalRequested(
        at=at, key=key, pending=PendingSignal(kind=kind, at=at, by=by, signal=int(number) if kind is SignalKind.SIGNAL else 0)
    )


def _job_switch(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    fields.skip(1)
    job, queue, index = fields.number(), fields.text(), fields.number()
    yield ev.JobSwitched(at=at, key=key_of(job, index), spec=0, queue=queue, by=fields.text())


def _job_move(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    fields.skip(1)
    job, place, base, index = fields.number(), fields.number(), fields.number(), fields.number()
    yield ev.JobMoved(at=at, key=key_of(job, index), position=0.0, place=place, top=base == 1, by=fields.text())


def _job_modify(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    name = fields.text()
    fields.skip(5)
    job, index = name.rstrip("]").partition("[")[::2]
    yield ev.JobModified(at=at, key=key_of(int(job), int(index) if index.isdigit() else 0), spec=0, name="", by=fields.text())


def _migrate(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    job = fields.number()
    fields.hosts()
    fields.skip(1)
    key = key_of(job, fields.number())
    yield ev.SignalRequested(at=at, key=key, pending=PendingSignal(kind=SignalKind.MIGRATE, at=at, by=fields.text()))


def _job_message(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    job, index, number = fields.number(), fields.number(), fields.number()
    fields.skip(4)
    text, by = fields.text(), fields.text()
    yield ev.MessagePosted(at=at, key=key_of(job, index), message=Message(number=number, text=text, at=at, by=by))


def _job_requeue(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    key = key_of(fields.number(), fields.number())
    yield ev.JobRevived(at=at, key=key, job=Job(key=key, spec=0, name="", submitted=at))


def _queue_control(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    code, queue = fields.number(), fields.text()
    fields.skip(1)
    by, comment = fields.text(), fields.text() if fields.left() else ""
    what = _OPENED[code] if 0 < code < len(_OPENED) else ""
    yield ev.QueueSwitched(at=at, queue=queue, open=code == 1, active=code == 3, by=by, comment=comment, what=what)


def _host_control(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    code, host = fields.number(), fields.text()
    fields.skip(1)
    by, comment = fields.text(), fields.text() if fields.left() else ""
    yield ev.HostSwitched(at=at, host=host, closed=code == 2, by=by, comment=comment)


def _started(at: float, fields: Fields, _: Runs) -> Iterator[ev.Event]:
    yield ev.MasterStarted(at=at, epoch=0, incarnation="", host=fields.text())


KINDS: dict[str, Callable[[float, Fields, Runs], Iterator[ev.Event]]] = {
    "JOB_START": _job_start, "JOB_EXECUTE": _job_execute, "JOB_STATUS": _job_status, "JOB_SIGNAL": _job_signal,
    "JOB_SWITCH": _job_switch, "JOB_MOVE": _job_move, "JOB_MODIFY2": _job_modify, "MIG": _migrate,
    "JOB_EXT_MSG": _job_message, "JOB_REQUEUE": _job_requeue, "QUEUE_CTRL": _queue_control, "HOST_CTRL": _host_control,
    "MBD_START": _started,
}  # fmt: skip
"""Readers by kind of record, except JOB_NEW; called with time, fields, and the newest dispatch of each key."""


def job_finish(fields: Fields, at: float) -> tuple[Job, Spec, JobText]:
    """The fields of JOB_FINISH in lsb.acct after its time; the spec number of the job is 0."""
    job = fields.number()
    fields.skip(2)
    slots, submitted, begin, deadline, started = (fields.number() for _ in range(5))
    user, queue, resreq, dependency, pre_exec, from_host, cwd = (fields.text() for _ in range(7))
    files = [fields.text() for _ in range(3)]
    fields.skip(1)
    asked, hosts = fields.hosts(), fields.hosts()
    state = JobState(fields.number() & (JobState.DONE | JobState.EXIT))
    fields.skip(1)
    name, command, utime, stime = fields.text(), fields.text(), fields.real(), fields.real()
    fields.skip(_RUSAGE - 2)
    mail, project, status, most = fields.text(), fields.text(), fields.number(), fields.number()
    fields.skip(2)
    key, memory, swap = key_of(job, fields.number()), int(fields.real()), int(fields.real())
    fields.skip(2)
    reservation = fields.text() if fields.left() else ""
    service_class = fields.text() if fields.left() else ""
    fields.skip(2)
    reason = REASON_OF.get(fields.number(), TermReason.NONE) if fields.left() > 0 else TermReason.NONE
    more = _tail(fields)
    average, ran = _average_and_run_time(fields)
    spec = Spec(
        user=user, queue=queue, slots=max(slots, 1), max_slots=max(most, slots, 1), project=project, resreq=resreq,
        hosts=tuple(asked), begin=begin, deadline=deadline, dependency=dependency, from_host=from_host,
        reservation=reservation, app=more["app"], group=more["group"], service_class=service_class,
    )  # fmt: skip
    text = JobText(
        command=command, cwd=cwd, input=files[0], output=files[1], error=files[2], mail_user=mail, pre_exec=pre_exec,
        post_exec=more["post_exec"], description=more["description"],
    )  # fmt: skip
    end = End(status=status, at=at, started=started, utime=utime, stime=stime, max_mem=memory, max_swap=swap, avg_mem=average)
    paused = 0.0 if ran is None else max(0.0, at - started - ran)
    parts = tuple(
        Part(host=part.host, slots=part.slots, end=end if not number else None) for number, part in enumerate(placed(hosts))
    )
    run = Attempt(number=1, uid="", dispatched=started, started=started, parts=parts, verdict=end, paused=paused)
    found = Job(
        key=key, spec=0, name=name or command, submitted=submitted, state=state, since=at, attempt=int(started > 0),
        run=run if started else None,
        outcome=Outcome(at=at, status=status, reason=reason),
    )  # fmt: skip
    return found, spec, text


def _tail(fields: Fields) -> dict[str, str]:
    """The fields that newer releases of LSF write after the reason."""
    names = ("", "", "", "", "app", "post_exec", "", "group", "", "", "", "", "", "description")
    return {name: fields.text() if fields.left() > 0 else "" for name in names} | {"": ""}


def _average_and_run_time(fields: Fields) -> tuple[int, int | None]:
    """Average memory in KB and seconds in state RUN, which newer releases still write after the description; None: not there."""
    try:
        fields.skip(2 * fields.number())  # of submitEXT
        fields.skip(_HOST_RUSAGE * fields.number() + 2)
        average = max(0, fields.number())
        fields.skip(10)  # from effectiveResReq to outdir
        return average, fields.number()
    except (IndexError, ValueError):
        return 0, None
