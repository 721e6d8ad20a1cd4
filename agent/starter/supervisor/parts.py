"""A part as the starter knows it, and the reports about it.

Rule: a part is kept until the agent orders to forget it; until then its state can be reported again.
"""

from __future__ import annotations

from enum import Enum

from agent.starter.process.ends import EncodedEnd, ToldEnd, encode_end
from agent.starter.protocol.codec import parse, read
from agent.starter.protocol.reports import (
    Address,
    End,
    Ended,
    Lost,
    PartReport,
    PartState,
    PartStatus,
    Prepared,
    Refused,
    Started,
    TaskReport,
)
from agent.starter.system import kernel

LEASE_SLACK = 3.0
"""Seconds after the end of a lease in which the shepherd must have ended its part; then it is killed itself. With what killing
takes it stays below ``config.model.params.KILL_TIME``; many native ones that become Python at once take one or two."""


class Due(Enum):
    """What a timer checks of a part."""

    CONFIRMED = "confirmed"
    """The shepherd must have confirmed the order to kill."""
    GONE = "gone"
    """The processes of the part must be gone."""


class Part:
    """One attempt on this host."""

    __slots__ = (
        "_end",
        "_told",
        "addr",
        "attach_address",
        "attempt",
        "deadline",
        "forgotten",
        "key",
        "kill_asked",
        "oom",
        "pid",
        "post",
        "reason",
        "shepherd",
        "started",
        "starttime",
        "state",
        "taken",
        "task_reports",
        "title",
        "uid",
        "writing",
        "wrote",
    )

    def __init__(self, uid: str, key: int, attempt: int, shepherd: int) -> None:
        self.uid = uid
        self.key = key
        self.attempt = attempt
        self.shepherd = shepherd
        """The number of its shepherd, 0: that shepherd is gone."""
        self.title = uid
        self.state = PartState.PREPARING
        self.pid: int | None = None
        self.starttime: int | None = None
        self.addr: Address | None = None
        self.oom = False
        """The kernel has killed processes of it for its memory limit."""
        self.post = 0
        """The wait status of its post-execution command."""
        self.attach_address = ""
        """Where the user of an interactive part attaches."""
        self.started: Started | None = None
        self._end: End | None = None
        self._told: ToldEnd | None = None
        """Its end, not read yet."""
        self.reason: Refused | Lost | None = None
        self.deadline: float | None = None
        self.taken = kernel.boottime()
        self.kill_asked = 0
        """The number of the kill order that its shepherd has not confirmed, 0: none."""
        self.forgotten = False
        self.task_reports: dict[int, TaskReport] = {}
        """In a role job: rank to the newest report of that task."""
        self.writing = False
        self.wrote: str | None = None
        """The result of writing its report into the user's file: "" success, else the error; None: there is none yet."""

    @property
    def end(self) -> End | None:
        """How it ended."""
        if self._end is None and self._told is not None:
            self._end = read(Ended, parse(self._told.encoded.text)).end
        return self._end

    @end.setter
    def end(self, end: End | None) -> None:
        self._end, self._told = end, None

    @property
    def has_ended(self) -> bool:
        """Whether there is an end."""
        return self._end is not None or self._told is not None

    def ended(self, report: Ended | ToldEnd) -> EncodedEnd:
        """It has ended: its end for the journal."""
        if isinstance(report, ToldEnd):
            self._told = report
            return report.encoded
        self._end = report.end
        return encode_end(self.uid, report.end)

    def overdue_at(self) -> float:
        """When its shepherd ought to have ended it by its lease (CLOCK_BOOTTIME), which it may have got too late."""
        assert self.deadline is not None
        return max(self.deadline, self.taken) + LEASE_SLACK

    def lost_with(self, code: int) -> Lost:
        """Why nothing is known of it where its shepherd, which ended with this exit code (-N: by signal N), left no end of it."""
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        if self.deadline is not None and self.overdue_at() <= kernel.boottime():
            how += ", as the lease had passed"
        return Lost(self.uid, f"the shepherd of {self.title} {how}")

    def status(self) -> PartStatus:
        """Its entry in Hello and Listed."""
        started, reason = self.started, self.reason
        return PartStatus(
            uid=self.uid,
            key=self.key,
            attempt=self.attempt,
            state=self.state,
            pid=self.pid,
            starttime=self.starttime,
            end=self.end,
            addr=self.addr,
            post=self.post,
            door=self.attach_address,
            tasks=started.tasks if started else None,
            at=started.at if started else 0.0,
            shepherd=started.shepherd if started else None,
            news=tuple(self.task_reports.values()),
            wrote=self.wrote,
            reason=reason.reason if reason else None,
            code=reason.code if isinstance(reason, Refused) else None,
            oom=self.oom,
        )

    def current_report(self) -> PartReport | None:
        """The report of its present state; None while it is being prepared."""
        if self.state is PartState.PREPARED:
            return Prepared(self.uid, self.addr, self.attach_address)
        if self.state is PartState.RUNNING:
            return self.started
        if self.state in (PartState.ENDED, PartState.GONE) and self.end is not None:
            return Ended(self.uid, self.end, gone=self.state is PartState.GONE)
        return self.reason
