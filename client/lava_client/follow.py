"""What becomes of jobs: one thread and one connection for all that are followed, however many they are.

The master is asked for the changes of the caller's jobs after a cursor, and answers when there are any. Where changes were missed
(another master, or none for long) the states of all followed jobs are read once, as bjobs shows them.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from lava_client import atexit
from lava_client.errors import LavaError, NotSignedIn, Refused
from lava_client.link import Closed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from lava_client.link import Link

    Key = tuple[int, int]
    """(number of the job, index of the element; 0: the job itself, or the array as a whole)."""

WAIT = 30.0
PAUSE = 1.0
UNCLAIMED = 50_000
IN_ONE_QUERY = 2_000
KILLED_WHILE_PENDING = 126
DONE, EXIT, GONE = "DONE", "EXIT", "GONE"
OVER = (DONE, EXIT, GONE)
"""GONE: lava does not know the job any more."""


class Seen(NamedTuple):
    """The state of a job. ``code``: its exit code as a shell shows it, once it has ended."""

    state: str
    host: str = ""
    code: int = 0
    why: str = ""
    reason: str = ""
    by: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the job has ended, or is not known any more."""
        return self.state in OVER

    @property
    def was_killed(self) -> bool:
        """Whether its owner or an administrator has ended it."""
        return self.reason in ("TERM_OWNER", "TERM_ADMIN", "TERM_FORCE_OWNER", "TERM_FORCE_ADMIN")


class Follower:
    """Calls back for each change of the jobs that are followed, in its own thread; the last call is that of the end."""

    def __init__(self, connect: Callable[[], Link]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._thread: threading.Thread | None = None
        self._cursor = ""
        self._followed: dict[Key, Callable[[Seen], None]] = {}
        self._unclaimed: OrderedDict[Key, Seen] = OrderedDict()
        """Changes of jobs that nobody follows yet: their submission may not have been answered yet."""
        self._unread: set[Key] = set()
        """Followed jobs whose state is to be read first."""
        self._closed = False

    def begin(self, link: Link) -> None:
        """Before a submission: from now on no change is missed. Raises Unavailable."""
        if not self._cursor:
            cursor = str(link.changes("", 0.0)["after"])
            with self._lock:
                self._cursor = self._cursor or cursor

    def follow(self, key: Key, tell: Callable[[Seen], None], read: bool = False) -> None:
        """Call ``tell`` for each change of a job from now on. ``read``: and first for its state, as it may have ended."""
        with self._lock:
            if self._closed:
                raise LavaError("the cluster is closed")
            seen = self._unclaimed.pop(key, None)
            if seen is None or not seen.is_over:
                self._followed[key] = tell
                if read:
                    self._unread.add(key)
                self._start()
        if seen is not None:
            tell(seen)

    def forget(self, key: Key) -> None:
        """Follow a job no more."""
        with self._lock:
            self._followed.pop(key, None)

    def close(self) -> None:
        """End the thread. Jobs that are still followed are told of no more."""
        with self._lock:
            self._closed = True
            link, thread = self._link, self._thread
        if link is not None:
            link.close()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def abandon(self) -> None:
        """In the child of a fork: what is followed is the parent's."""
        self._lock = threading.Lock()
        self._thread, self._cursor = None, ""
        self._followed, self._unread = {}, set()
        if self._link is not None:
            self._link.forget()

    def _start(self) -> None:
        if self._thread is None:
            # not a daemon, which subinterpreters have not: atexit ends it
            thread = threading.Thread(target=self._run, name="lava jobs", daemon=False)
            atexit.register(self)
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        failed = False
        while True:
            with self._lock:
                if self._closed or not self._followed:
                    self._thread = None
                    if self._link is not None:
                        self._link.idle()
                    return
                link = self._link = self._link or self._connect()
            try:
                if failed:
                    self._read(link)
                    failed = False
                self._take(link)
            except Closed:
                with self._lock:
                    self._thread = None
                return
            except NotSignedIn as error:
                self._lose(str(error))
            except LavaError:
                # an older master that knows no such ask, or one that cannot answer now: what bjobs shows is read again
                failed, self._cursor = True, ""
                with self._lock:
                    self._unread.update(self._followed)
                if atexit.wait(PAUSE):
                    return

    def _lose(self, why: str) -> None:
        """Nothing is heard of any job any more."""
        self._cursor = ""
        with self._lock:
            lost = list(self._followed)
        for key in lost:
            self._tell(key, Seen(GONE, why=why))

    def _take(self, link: Link) -> None:
        """Wait for changes, and tell of them."""
        known = bool(self._cursor)
        wait = WAIT if known and not self._unread else 0.0
        answer = link.changes(self._cursor, wait)
        self._cursor = str(answer["after"])
        if answer.get("lost") or not known:
            with self._lock:
                self._unread.update(self._followed)
        for row in answer["changes"]:
            for key in _keys(str(row["job"])):
                # the end of an array does not say how its elements ended; it may come before the answer to its submission
                whole = row["state"] in OVER and "status" not in row
                self._tell(key, _remembered(link, key) if whole else _seen(row))
        if self._unread:
            self._read(link)

    def _tell(self, key: Key, seen: Seen) -> None:
        with self._lock:
            tell = self._followed.get(key)
            if tell is None:
                self._unclaimed[key] = seen
                while len(self._unclaimed) > UNCLAIMED:
                    self._unclaimed.popitem(last=False)
                return
            if seen.is_over:
                del self._followed[key]
                self._unread.discard(key)
        tell(seen)

    def _read(self, link: Link) -> None:
        """Read the states of jobs of which changes may have been missed."""
        with self._lock:
            unread, self._unread = self._unread & self._followed.keys(), set()
        try:
            jobs = sorted({job for job, _ in unread})
            for at in range(0, len(jobs), IN_ONE_QUERY):
                self._read_some(link, jobs[at : at + IN_ONE_QUERY], unread)
        except (LavaError, OSError):
            with self._lock:
                self._unread |= unread
            raise

    def _read_some(self, link: Link, jobs: list[int], unread: set[Key]) -> None:
        found = states(link, [str(job) for job in jobs])
        asked = set(jobs)
        for key in [key for key in unread if key[0] in asked]:
            seen = found.get(key)
            if seen is None and not key[1]:
                members = [seen for (job, _), seen in found.items() if job == key[0]]
                if any(not one.is_over for one in members):
                    continue
                seen = next((one for one in members if one.state != DONE), members[0] if members else None)
            if seen is None:
                seen = _remembered(link, key)
            if seen.state not in ("PEND", "RUN"):  # a RUN may not have begun yet, of which a change will tell
                self._tell(key, seen)


def states(link: Link, ids: list[str]) -> dict[Key, Seen]:
    """The states of jobs and elements by key, as bjobs shows them; those that it does not know are left out."""
    fields = "jobid jobindex stat exit_code exit_reason first_host"
    found = {}
    for row in link.rows(ids, fields):
        if "STAT" in row:
            reason, colon, why = str(row["EXIT_REASON"]).partition(": ")
            if not reason.startswith("TERM_"):
                reason, why = "", reason + colon + why
            code = int(row["EXIT_CODE"] or 0)
            seen = Seen(row["STAT"], row["FIRST_HOST"], code or (KILLED_WHILE_PENDING if row["STAT"] == EXIT else 0), why, reason)
            found[int(row["JOBID"]), int(row["JOBINDEX"] or 0)] = seen
    return found


def _remembered(link: Link, key: Key) -> Seen:
    """The end of a job that bjobs shows no more."""
    if key[1]:
        return Seen(GONE)
    try:
        return _seen(link.end(key[0]))
    except Refused:
        return Seen(GONE)


def _seen(row: Mapping[str, Any]) -> Seen:
    state = str(row["state"])
    code = 0
    if state in OVER:
        ended = os.waitstatus_to_exitcode(int(row.get("status") or 0))
        code = 128 - ended if ended < 0 else ended
        if not code and state == EXIT:
            code = KILLED_WHILE_PENDING
    told = [str(row.get(name) or "") for name in ("why", "reason", "by")]
    return Seen(state, str(row.get("host") or ""), code, *told)


def key_of(job: str) -> Key:
    """The key of ``12`` or ``12[3]``. Raises ValueError."""
    number, _, index = job.partition("[")
    return int(number), int(index.rstrip("]") or 0)


def _keys(job: str) -> Iterator[Key]:
    """The keys of ``12``, ``12[3]`` or ``12[1-5,7-9:2]``."""
    number, _, ranges = job.partition("[")
    for part in ranges.rstrip("]").split(","):
        span, _, step = part.partition(":")
        first, _, last = span.partition("-")
        begin = int(first or 0)
        for index in _range(begin, int(last or begin), int(step or 1)):
            yield int(number), index


def _range(first: int, last: int, step: int) -> Iterable[int]:
    return range(first, last + 1, step)
