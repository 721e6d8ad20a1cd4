"""A job as a future, and what can be asked about any job."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import Future
from concurrent.futures import TimeoutError as WaitTimeout
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

from lava_client import card
from lava_client.errors import JobFailed, JobKilled, LavaError, Refused
from lava_client.follow import DONE, GONE, Seen, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from lava_client.session import Session

_SIZE = re.compile(r"([0-9.]+)\s*([KMGTP]?)")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


class Usage(NamedTuple):
    """What a job has used so far: seconds and bytes, all tasks together; of an array the sums over its elements."""

    run_seconds: float
    cpu_seconds: float
    memory: int
    """Now."""
    max_memory: int
    """The most at a time; of an array the most of one element."""
    slots: int
    hosts: tuple[str, ...]
    gpus: str
    """As ``bjobs -o gpu_alloc`` has it."""


class OfJob:
    """What can be asked about a job of a cluster."""

    _session: Session
    _shown: Callable[[], None] | None = None
    """Shows the card again where it is on display."""

    @property
    def id(self) -> str | None:
        """``12``, or ``12[3]`` for an element of an array; None while it is not submitted."""
        raise NotImplementedError

    def _asked(self) -> str:
        if self.id is None:
            raise LavaError("it is not submitted yet")
        return self.id

    def state(self) -> str:
        """As bjobs has it: PEND, WAIT, RUN, DONE, EXIT, PSUSP, USUSP, SSUSP, UNKWN, ZOMBI; of an array how many are in which."""
        rows = self._session.link.rows([self._asked()], "stat")
        states = [row["STAT"] for row in rows if "STAT" in row]
        if len(states) < 2:
            return states[0] if states else GONE
        return " ".join(f"{states.count(state)} {state}" for state in sorted(set(states)))

    def why(self) -> str:
        """Why the job waits, and what would start it; of one that has ended how it ended: as ``lava why`` says."""
        return self._session.link.why(self._asked())

    def eta(self) -> datetime | None:
        """When a waiting job will have started, by the run limits of those before it; None where that is not known.

        Of an array: its first element that waits. In the time zone of this process.
        """
        link = self._session.link
        rows = link.rows([self._asked()], "jobid jobindex stat")
        row = next((row for row in rows if row.get("STAT") == "PEND"), None)
        if row is None:
            return None
        index = int(row["JOBINDEX"] or 0)
        at = link.start(f"{row['JOBID']}[{index}]" if index else row["JOBID"])
        return None if at is None else datetime.fromtimestamp(at, timezone.utc).astimezone()

    def tail(self, lines: int = 10) -> str:
        """The last lines of its output so far, as ``bpeek`` has it. Raises Refused where there is none."""
        text = re.sub(r"<< output from \w+ >>\n\Z", "", self._session.link.peek(self._asked()))
        return "".join(text.splitlines(keepends=True)[-lines:])

    def _repr_html_(self) -> str:
        return card.html(self.id, self._session.link.rows)

    def _ipython_display_(self) -> None:
        self._shown = card.display(self, self._repr_html_)  # type: ignore[arg-type]

    def _show_again(self) -> None:
        if self._shown is not None:
            self._shown()

    def usage(self) -> Usage:
        """What it has used. Raises Refused for a job that bjobs does not show any more."""
        found = self._session.link.rows([self._asked()], "run_time cpu_used mem max_mem slots exec_host gpu_alloc")
        rows = [row for row in found if "SLOTS" in row]
        if not rows:
            raise Refused(f"Job <{self.id}> is not found")
        names = [name.rpartition("*")[2] for row in rows for name in row["EXEC_HOST"].split(":") if name]
        return Usage(
            run_seconds=sum(_number(row["RUN_TIME"]) for row in rows),
            cpu_seconds=sum(_number(row["CPU_USED"]) for row in rows),
            memory=sum(_bytes(row["MEM"]) for row in rows),
            max_memory=max(_bytes(row["MAX_MEM"]) for row in rows),
            slots=sum(int(row["SLOTS"] or 0) for row in rows),
            hosts=tuple(dict.fromkeys(names)),
            gpus=" ".join(row["GPU_ALLOC"] for row in rows if row["GPU_ALLOC"]),
        )


def _number(text: str) -> float:
    return float(text.split()[0]) if text else 0.0


def _bytes(text: str) -> int:
    found = _SIZE.match(text)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


class Job(OfJob, Future[int]):
    """A submitted job: a future whose ``result()`` is 0, or raises JobFailed. Made by ``Cluster``; ``await job`` works too."""

    def __init__(self, session: Session, id: str, queue: str = "", read: bool = False) -> None:
        super().__init__()
        self._session, self._id, self.queue = session, id, queue
        self._session.follower.follow(key_of(id), self._tell, read)

    @property
    def id(self) -> str:
        """``12``, or ``12[3]`` for an element of an array."""
        return self._id

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, ``timeout`` seconds at most; whether it has."""
        try:
            self.exception(timeout)
        except WaitTimeout:
            return False
        return True

    def cancel(self) -> bool:
        """Kill the job; False if it had ended. ``result`` raises JobKilled once the job has ended."""
        return bool(self._session.link.kill([self._id]))

    def _tell(self, seen: Seen) -> None:
        if not seen.is_over:
            if not self.running():
                self.set_running_or_notify_cancel()
            self._show_again()
        elif seen.state == DONE:
            self.set_result(0)
        else:
            self.set_exception(failure(self._id, seen))

    def __await__(self) -> Generator[Any, None, int]:
        return asyncio.wrap_future(self).__await__()

    def __repr__(self) -> str:
        state = "submitted" if not self.done() else "done" if self.exception() is None else f"failed: {self.exception()}"
        return f"<Job {self._id} {state}>"


def failure(job: str, seen: Seen) -> JobFailed:
    """The exception for a job that did not end well."""
    if seen.state == GONE:
        return JobFailed(job, -1, seen.why or "lava does not know it any more, nor how it ended")
    kind = JobKilled if seen.was_killed else JobFailed
    by = f"killed by {seen.by}" if seen.was_killed and seen.by else ""
    return kind(job, seen.code, ", ".join(part for part in (seen.why, by) if part), seen.reason)
