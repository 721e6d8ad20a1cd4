"""The process that writes lsb.events and lsb.acct from the event table, for tools that read these files.

Rule: it only reads the store, and remembers how far it came beside the files, so that each event is written once; a line that
was cut off by a crash is taken back first.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import socket
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from lavad.core import events as ev
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import JobState
from lavad.lsb import write as lsf
from lavad.replica import protocol as feed
from lavad.replica.spawn import child_socket, set_title
from lavad.store.errors import StoreError
from lavad.store.read import Find, Reader

EVERY = 1.0
AT_ONCE = 5000
LARGEST = 256 << 20
NO_TEXT = JobText(command="")
_USES = (
    ev.JobSubmitted,
    ev.JobDispatched,
    ev.PartStarted,
    ev.JobSuspended,
    ev.JobResumed,
    ev.JobRequeued,
    ev.JobFinished,
    ev.JobHeld,
    ev.JobReleased,
    ev.JobLost,
    ev.JobFound,
    ev.JobSwitched,
    ev.QueueSwitched,
    ev.HostSwitched,
    ev.MasterStarted,
    ev.ElementsKilled,
    ev.JobWished,
    ev.JobMoved,
    ev.JobModified,
    ev.JobRevived,
    ev.MessagePosted,
    ev.CheckpointMade,
    ev.ElementsHeld,
    ev.ElementsReleased,
)


@lru_cache(maxsize=4096)
def uid_of(user: str) -> int:
    """A user's number; -1 where this host does not know them."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return -1


class Known:
    """What later lines need of earlier ones; lines of jobs from before this process have the job's last record, or nothing."""

    def __init__(self) -> None:
        self.owners: dict[int, str] = {}
        """Of job ids."""
        self.first: dict[int, str] = {}
        """Key to the first host of what runs."""


class Log:
    """The two files and how far they are written."""

    def __init__(self, folder: Path, reader: Reader) -> None:
        self.folder = folder
        self.reader = reader
        self.paths = {name: folder / name for name in ("lsb.events", "lsb.acct")}
        self._mark = folder / ".lava.position"
        self.seq = self._recovered()
        self.known = Known()

    def _recovered(self) -> int:
        """Where to go on; what was written after the last mark is taken back."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            mark: dict[str, Any] = json.loads(self._mark.read_text())
        except (OSError, ValueError):
            mark = {"seq": 0}
        for name, path in self.paths.items():
            size = int(mark.get(name, 0))
            path.touch()
            if path.stat().st_size > size:
                os.truncate(path, size)
        return int(mark["seq"])

    def advance(self) -> bool:
        """Write what is new; whether there may be more."""
        rows = self.reader.events_after(self.seq, AT_ONCE)
        if not rows:
            return False
        lines = Lines(self.reader, [event for _, event in rows if isinstance(event, _USES)], self.known)
        self._append(self.paths["lsb.events"], lines.events)
        self._append(self.paths["lsb.acct"], lines.accounts)
        self.seq = rows[-1][0]
        self._rotate()
        sizes = {name: path.stat().st_size for name, path in self.paths.items()}
        part = self._mark.with_suffix(".new")
        part.write_text(json.dumps({"seq": self.seq, **sizes}))
        part.replace(self._mark)
        return len(rows) == AT_ONCE

    def _append(self, path: Path, lines: list[str]) -> None:
        if lines:
            with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
                file.write("".join(lines))

    def _rotate(self) -> None:
        for path in self.paths.values():
            if path.stat().st_size > LARGEST:
                path.replace(path.with_name(path.name + ".1"))
                path.touch()


class Lines:
    """The lines of some events, with what they need read in a few queries."""

    def __init__(self, reader: Reader, events: list[ev.Event], known: Known) -> None:
        self.known = known
        self.events: list[str] = []
        self.accounts: list[str] = []
        jobs = [event for event in events if isinstance(event, ev.JobEvent)]
        told = (ev.JobSubmitted, ev.PartStarted, ev.JobFinished, ev.JobModified)
        started = [event.key for event in jobs if isinstance(event, told)]
        keys = {event.key for event in jobs if isinstance(event, (ev.JobFinished, ev.PartStarted))}
        keys |= {index << 32 | e.key for e in jobs if isinstance(e, ev.ElementsKilled) for index in e.elements}
        self.texts = reader.texts({job_of(key) for key in (*started, *keys)})
        self.finished = {job.key: job for job in reader.finished_jobs(Find(keys=tuple(keys)))} if keys else {}
        numbers = {event.spec for event in jobs if isinstance(event, (ev.JobSubmitted, ev.JobModified))}
        numbers |= {job.spec for job in self.finished.values()}
        self.specs = reader.specs(sorted(numbers))
        for event in events:
            self._tell(event)

    def _spec(self, number: int) -> Spec:
        return self.specs.get(number) or Spec(user="?", queue="?")

    def _text(self, key: int) -> JobText:
        return self.texts.get(job_of(key)) or NO_TEXT

    def _tell(self, event: ev.Event) -> None:
        line = ""
        if isinstance(event, ev.JobSubmitted):
            spec = self._spec(event.spec)
            self.known.owners[event.key] = spec.user
            line = lsf.job_new(event, spec, self._text(event.key), uid_of(spec.user))
        elif isinstance(event, ev.JobDispatched):
            self.known.first[event.key] = event.parts[0].host if event.parts else ""
            line = lsf.job_start(event)
        elif isinstance(event, ev.PartStarted):
            line = self._execute(event)
        elif isinstance(event, ev.JobFinished):
            line = self._finish(event)
        elif isinstance(event, ev.JobModified):
            line = lsf.job_modify(event, self._spec(event.spec), self._text(event.key), uid_of(event.by))
        elif isinstance(event, ev.ElementsKilled):
            for index in event.elements:
                self._account(self.finished.get(index << 32 | event.key))
                line += lsf.job_status(index << 32 | event.key, event.at, int(JobState.EXIT), why=lsf.exit_info(event.reason))
        elif isinstance(event, ev.JobEvent):
            line = _change(event)
        else:
            line = _control(event)
        if line:
            self.events.append(line)

    def _execute(self, event: ev.PartStarted) -> str:
        """Of the first host alone, as LSF has it."""
        if self.known.first.get(event.key, event.host) != event.host:
            return ""
        job = self.finished.get(event.key)
        user = self.known.owners.get(job_of(event.key)) or (self._spec(job.spec).user if job is not None else "")
        return lsf.job_execute(event, user, uid_of(user), self._text(event.key).home)

    def _finish(self, event: ev.JobFinished) -> str:
        self.known.first.pop(event.key, None)
        if event.key == job_of(event.key):
            self.known.owners.pop(event.key, None)
        job = self.finished.get(event.key)
        end = event.end or (job.run.verdict if job is not None and job.run is not None else None)
        self._account(job)
        line = lsf.killed_waiting(event.key, event.at, event.by, uid_of(event.by)) if event.by else ""
        line += lsf.job_status(event.key, event.at, int(event.state), 0, end, event.status, lsf.exit_info(event.reason))
        if event.state is JobState.DONE:
            line += lsf.job_status(event.key, event.at, int(JobState.DONE) | 0x80)
        return line

    def _account(self, job: Job | None) -> None:
        if job is not None:
            spec = self._spec(job.spec)
            self.accounts.append(lsf.job_finish(job, spec, self._text(job.key), uid_of(spec.user)))


def _elements(event: ev.ElementsHeld | ev.ElementsReleased) -> str:
    state = JobState.PSUSP if isinstance(event, ev.ElementsHeld) else JobState.PEND
    return "".join(lsf.job_status(index << 32 | event.key, event.at, int(state)) for index in event.elements)


_TOLD: dict[type[ev.Event], Callable[[Any], str]] = {
    ev.JobWished: lambda event: "".join(lsf.job_signal(event, uid_of(event.wish.by))),
    ev.JobMoved: lambda event: lsf.job_move(event, uid_of(event.by)),
    ev.MessagePosted: lambda event: lsf.job_message(event, uid_of(event.message.by)),
    ev.JobRevived: lambda event: lsf.record("JOB_REQUEUE", event.at, [job_of(event.key), event.key >> 32]),
    ev.CheckpointMade: lambda event: lsf.record("CHKPNT", event.at, [job_of(event.key), 0, 0, 1, 0, event.key >> 32]),
    ev.ElementsHeld: _elements,
    ev.ElementsReleased: _elements,
}
_QUEUE_CODES = {"qopen": 1, "qclose": 2, "qact": 3, "qinact": 4}


def _change(event: ev.JobEvent) -> str:
    states = {ev.JobHeld: JobState.PSUSP, ev.JobReleased: JobState.PEND, ev.JobResumed: JobState.RUN, ev.JobLost: JobState.UNKWN}
    told = _TOLD.get(type(event))
    if told is not None:
        return told(event)
    if isinstance(event, ev.JobSwitched):
        return lsf.record("JOB_SWITCH", event.at, [0, job_of(event.key), event.queue, event.key >> 32, event.by])
    if isinstance(event, (ev.JobSuspended, ev.JobFound)):
        return lsf.job_status(event.key, event.at, int(event.state))
    if isinstance(event, ev.JobRequeued):
        return lsf.job_status(event.key, event.at, int(event.state), event.reason)
    state = states.get(type(event))
    return lsf.job_status(event.key, event.at, int(state)) if state is not None else ""


def _control(event: ev.Event) -> str:
    if isinstance(event, ev.MasterStarted):
        indices = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
        named = lsf.record("LOAD_INDEX", event.at, [len(indices), *indices])
        return lsf.record("MBD_START", event.at, [event.host, "lava", 0, 0]) + named
    if isinstance(event, ev.QueueSwitched):
        code = _QUEUE_CODES.get(event.what) or ((1 if event.open else 2) if event.active else 4)
        return lsf.record("QUEUE_CTRL", event.at, [code, event.queue, uid_of(event.by), event.by, event.comment])
    if isinstance(event, ev.HostSwitched):
        fields = [2 if event.closed else 1, event.host, uid_of(event.by), event.by, event.comment]
        return lsf.record("HOST_CTRL", event.at, fields)
    return ""


def _site(link: socket.socket) -> feed.Site:
    """The first frame from the master."""
    data = b""
    while len(data) < feed.HEAD.size or len(data) < feed.HEAD.size + feed.HEAD.unpack(data[: feed.HEAD.size])[0]:
        piece = link.recv(1 << 16)
        if not piece:
            raise SystemExit(0)
        data += piece
    site = feed.decode_news(data[feed.HEAD.size :])
    assert isinstance(site, feed.Site)
    return site


def main() -> int:
    """Entry point: writes until the master is gone."""
    set_title("lava-eventlog")
    link = child_socket()
    site = _site(link)
    folder = Path(site.lsf["LSB_SHAREDIR"]) / site.cluster / "logdir"
    try:
        log = Log(folder, Reader.open(site.database))
        while True:
            while log.advance():
                pass
            if select.select([link], [], [], EVERY)[0] and not link.recv(1 << 16):
                return 0
    except (OSError, StoreError) as error:
        print(f"lsb.events in {folder} is not written: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 1
