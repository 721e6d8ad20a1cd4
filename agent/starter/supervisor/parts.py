"""A part as the starter knows it, and what it tells the agent about it.

Rule: a part stays until its end was forgotten by order; being told again is always possible.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class State(Enum):
    """PartStatus.state of the protocol."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RUNNING = "running"
    ENDED = "ended"
    GONE = "gone"
    LOST = "lost"
    REFUSED = "refused"


OVER = frozenset({State.GONE, State.LOST, State.REFUSED})


class Part:
    """One attempt on this host."""

    __slots__ = (
        "addr",
        "attempt",
        "cgroup",
        "deadline",
        "door",
        "end",
        "forgotten",
        "key",
        "kill_asked",
        "lane",
        "news",
        "pid",
        "post",
        "reason",
        "started",
        "starttime",
        "state",
        "title",
        "uid",
        "writing",
        "wrote",
    )

    def __init__(self, uid: str, key: int, attempt: int, lane: int) -> None:
        self.uid = uid
        self.key = key
        self.attempt = attempt
        self.lane = lane
        self.title = uid
        self.state = State.PREPARING
        self.pid: int | None = None
        self.starttime: int | None = None
        self.addr: list[Any] | None = None
        self.post = 0
        """The wait status of its post-execution command."""
        self.door = ""
        """Where the user of an interactive part comes in."""
        self.started: dict[str, Any] | None = None
        self.end: dict[str, Any] | None = None
        self.reason: dict[str, Any] | None = None
        self.deadline: float | None = None
        self.kill_asked = 0
        self.forgotten = False
        self.cgroup: list[str] = []
        self.news: dict[int, dict[str, Any]] = {}
        """Of a led part: rank to the newest report of that task."""
        self.writing = False
        self.wrote: str | None = None
        """What became of what was written for it after its end: "" is well, None not asked or under way."""

    def status(self) -> dict[str, Any]:
        """PartStatus; with ``addr`` when prepared, ``tasks`` when running, ``reason`` when lost or refused."""
        status: dict[str, Any] = {
            "uid": self.uid,
            "key": self.key,
            "attempt": self.attempt,
            "state": self.state.value,
            "pid": self.pid,
            "starttime": self.starttime,
            "end": self.end,
        }
        if self.addr is not None:
            status["addr"] = self.addr
        if self.post:
            status["post"] = self.post
        if self.door:
            status["door"] = self.door
        if self.started is not None:
            status["tasks"] = self.started["tasks"]
            status["at"] = self.started["at"]
            status["shepherd"] = self.started.get("shepherd")
        if self.news:
            status["news"] = list(self.news.values())
        if self.wrote is not None:
            status["wrote"] = self.wrote
        if self.reason is not None:
            status["reason"] = self.reason.get("reason")
            status["code"] = self.reason.get("code")
        return status

    def again(self) -> dict[str, Any] | None:
        """The report that says where it is now; None while it is being prepared."""
        if self.state is State.PREPARED:
            return {"uid": self.uid, "is": "prepared", "addr": self.addr, "door": self.door}
        if self.state is State.RUNNING:
            return self.started
        if self.state in (State.ENDED, State.GONE) and self.end is not None:
            report: dict[str, Any] = {"uid": self.uid, "is": "ended", "end": self.end}
            if self.state is State.GONE:
                report["gone"] = True
            return report
        return self.reason
