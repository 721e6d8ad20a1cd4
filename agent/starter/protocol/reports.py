"""Reports: from a shepherd to the starter, and from the starter to the agent.

What happens to a part is told once when it happens, in the order prepared, started, ended, gone; the newest state of each part is
told again in ``Hello``. A part that was refused or lost has no other end. Parts of role jobs tell of each task besides.
"""

# No "from __future__ import annotations": the codec reads the annotations.

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, NewType

from agent.starter.protocol.answers import Data, Folders, Generations
from agent.starter.protocol.codec import Json, text
from agent.starter.protocol.report_kinds import report

# -- what reports are made of --------------------------------------------------------------------------------------------


_NO_MORE: tuple[object, ...] = (0, ())


class Address(NamedTuple):
    """Where the shepherd of a part is reached by those on other hosts; ``[host, port, [port …]]`` on the wire."""

    host: str = ""
    """"": it has no link."""
    port: int = 0
    ports: tuple[int, ...] = ()
    """Ports that it keeps free for the job's processes."""

    @classmethod
    def from_json(cls, value: list[object]) -> "Address":
        """Read it; what is missing is 0 or empty."""
        host, *rest = value
        port, ports = (*rest, *_NO_MORE[len(rest) :])[:2]
        kept = ports if isinstance(ports, list | tuple) else ()
        return cls(str(host), int(str(port)), tuple(int(str(one)) for one in kept))

    def to_json(self) -> list[object]:
        """Write it."""
        return list(self)


class Root(NamedTuple):
    """What every host of a job is told of the first one; ``[host, port, [[port …] …]]`` on the wire."""

    host: str = ""
    port: int = 0
    ports: tuple[tuple[int, ...], ...] = ()
    """The ports of ``Address``, of each host; (): no host keeps any."""

    @classmethod
    def from_json(cls, value: list[object]) -> "Root":
        """Read it; what is missing is 0 or empty."""
        host, *rest = value
        port, lists = (*rest, *_NO_MORE[len(rest) :])[:2]
        kept = lists if isinstance(lists, list | tuple) else ()
        ports = tuple(tuple(int(str(one)) for one in part) for part in kept)
        return cls(str(host), int(str(port)), ports)

    def to_json(self) -> list[object]:
        """Write it."""
        return list(self)


class RunningTask(NamedTuple):
    """A task that runs."""

    rank: int
    pid: int
    starttime: int


class EndedTask(NamedTuple):
    """A task in the end of a part; ``status`` None: it still ran when the part was given up."""

    rank: int
    pid: int
    status: int | None
    utime: float
    stime: float
    maxrss_kb: int
    at: float


class FirstFailure(NamedTuple):
    """The task that failed first and with it the part. Rank -1: no task, but another host or a link."""

    rank: int
    status: int
    reason: str


class HostUse(NamedTuple):
    """The highest sums that the agent's samples saw on one host; memory in KB."""

    mem: int = 0
    swap: int = 0
    avg_mem: int = 0
    processes: int = 0
    threads: int = 0
    cpus: float = 0.0
    """The most CPUs in use at a time."""
    cpus_after: float = 0.0
    """When that was, in seconds after the first sample."""
    cpu: float = 0.0
    """Seconds of CPU time."""
    limit: str = ""
    """The limit (the name of a TermReason) for which the agent ends what runs there."""


class HostEnd(NamedTuple):
    """What another host of the job told the first one of its tasks. From a shepherd, a process of the user's."""

    host: str
    utime: float
    stime: float
    mem: int
    """KB: the sum of the tasks' peaks, so far as they are known."""
    tasks: int
    use: HostUse | None
    silent: bool = False
    """None of them used the PMI that it was offered."""
    status: int = 0
    """The wait status of the task there that failed first of the whole job; 0: it was none of them, or the starter is older."""


class End(NamedTuple):
    """How a part ended; on disk before anybody is told."""

    status: int
    """The wait status that counts for the part."""
    at: float
    started: float
    """0: no task was started."""
    utime: float
    stime: float
    maxrss_kb: int
    """The largest peak of a task."""
    tasks: tuple[EndedTask, ...]
    first: FirstFailure | None
    lease: bool
    """Its lease ended it."""
    shepherd_kb: int = 0
    """The shepherd's own peak: a task's peak that is not above it is not known (it is inherited by vfork)."""
    cwd: str = ""
    """Where it ran."""
    others: tuple[HostEnd, ...] = ()
    """On the first host: of the other hosts."""
    note: str = ""
    """What its user should know though it ended well; of a part with ``notes`` what its task said."""
    made_cwd: bool = False
    """The folder was made for the part."""


# -- about parts ---------------------------------------------------------------------------------------------------------


@report("prepared")
class Prepared(NamedTuple):
    """All is made ready that can be refused; it waits for ``Go``."""

    uid: str
    addr: Address | None
    """None: there is nothing that the other hosts must know."""
    door: str = ""
    """Where the user of an interactive part attaches: ``ip port name``; named by its key on the wire."""


@report("started")
class Started(NamedTuple):
    """Its tasks run. Left out where they ended within a few milliseconds."""

    uid: str
    tasks: tuple[RunningTask, ...]
    at: float
    shepherd: int | None = None
    """The pid that they are children of."""


@report("ended")
class Ended(NamedTuple):
    """Its tasks have ended; ``gone``: and nothing else of it is left, no ``Gone`` follows."""

    uid: str
    end: End
    gone: bool = False


@report("gone")
class Gone(NamedTuple):
    """Nothing of it is left."""

    uid: str
    post: int = 0
    """The wait status of its post-execution command."""


@report("refused")
class Refused(NamedTuple):
    """It was not started, for a reason in one line.

    Codes: stale, bad, no_user, nomem, cwd, input, output, secret, checkpoint, files, jobfile, ports, pre_exec, pre_abort.
    """

    uid: str
    code: str
    reason: str


@report("lost")
class Lost(NamedTuple):
    """Its shepherd died: how it ended is not known, and nothing of it is left."""

    uid: str
    reason: str


@report("deaf")
class SignalIgnored(NamedTuple):
    """No process of it has a handler for a signal that was sent to those that have one."""

    uid: str
    sig: int = 0


@report("oom")
class RanOutOfMemory(NamedTuple):
    """The kernel has killed processes of it for the memory limit of its control group; comes before its end."""

    uid: str


@report("task_started")
class TaskStarted(NamedTuple):
    """A task of a role job runs that was ordered by ``StartTask``."""

    uid: str
    rank: int
    number: int
    """Of its start, 1 for the one with the part."""
    pid: int
    starttime: int


@report("task_ended")
class TaskEnded(NamedTuple):
    """A task of a role job ended."""

    uid: str
    rank: int
    number: int
    pid: int
    status: int
    at: float = 0.0


@report("killing")
class Killing(NamedTuple):
    """The shepherd has the order to kill; for the starter only."""

    uid: str


@report("stuck")
class Stuck(NamedTuple):
    """Some process of the part may not be killed by its user: the starter, who may be root, is to do it."""

    uid: str


@report("wrote")
class Wrote(NamedTuple):
    """``Append`` or ``Deliver`` was carried out. A shepherd names it by ``id``, the starter by ``uid``, which is the same."""

    error: str
    """"": it went well."""
    id: str = ""
    uid: str = ""


# -- to the agent --------------------------------------------------------------------------------------------------------


class PartState(Enum):
    """Where a part is, as the starter knows it."""

    PREPARING = "preparing"
    PREPARED = "prepared"
    RUNNING = "running"
    ENDED = "ended"
    GONE = "gone"
    LOST = "lost"
    REFUSED = "refused"

    @property
    def over(self) -> bool:
        """Nothing of it is left."""
        return self in (PartState.GONE, PartState.LOST, PartState.REFUSED)


TaskReport = TaskStarted | TaskEnded


class PartStatus(NamedTuple):
    """All that is known of a part."""

    uid: str
    key: int
    attempt: int
    state: PartState
    pid: int | None
    """Of its first task."""
    starttime: int | None
    end: End | None
    addr: Address | None = None
    post: int = 0
    door: str = ""
    """As in ``Prepared``."""
    tasks: tuple[RunningTask, ...] | None = None
    """Once they have been started; with ``at`` and ``shepherd`` as in ``Started``."""
    at: float = 0.0
    shepherd: int | None = None
    news: tuple[TaskReport, ...] = ()
    """Of a role job: the newest report of each task."""
    wrote: str | None = None
    """What became of ``Append`` or ``Deliver``: "" is well, None not asked for or under way."""
    reason: str | None = None
    """Why it was lost or refused."""
    code: str | None = None
    oom: bool = False
    """As ``RanOutOfMemory`` says."""


@report("hello")
class Hello(NamedTuple):
    """The answer to ``Greet``: the starter and all parts that are here."""

    boot: str
    """The id of this boot of the host."""
    pid: int
    seq: int
    """The highest ``Start.seq`` so far."""
    parts: tuple[PartStatus, ...]
    protocol: int = 1
    """Of ``version.py``. From 2 on a template is known as long as the connection lasts, and a job's script is taken from it."""


@report("list")
class Listed(NamedTuple):
    """The answer to ``List``."""

    parts: tuple[PartStatus, ...]


PartReport = Prepared | Started | Ended | Gone | Refused | Lost | SignalIgnored | RanOutOfMemory | TaskStarted | TaskEnded | Wrote


@report("reports")
class Reports(NamedTuple):
    """What happened to parts in one turn of the starter's loop, in order."""

    reports: tuple[Json, ...]
    """Each as ``find_report`` reads it: one of an unknown kind is passed over."""


FromShepherd = PartReport | Killing | Stuck | Data | Folders | Generations
EncodedReport = NewType("EncodedReport", bytes)
"""A report of a shepherd as JSON."""
FromStarter = Hello | Listed | Reports | Data | Folders | Generations
Report = PartReport | FromShepherd | FromStarter


def find_report(obj: Json) -> Report | None:
    """The report that an object is, None when its kind is not known; ProtocolError when it is no report of its kind."""
    found: Report | None = report.find(obj)
    return found


def part_reports(what: Reports) -> list[PartReport]:
    """Those of known kinds."""
    return [report for obj in what.reports if isinstance(report := find_report(obj), PartReport)]


def write_report(what: Report) -> Json:
    """A report as an object."""
    return report.write(what)


def write_reports(what: Iterable[PartReport | EncodedReport]) -> bytes:
    """``Reports`` as JSON, of which some are that already."""
    written = (one if isinstance(one, bytes) else text(write_report(one)) for one in what)
    return b'{"is":"reports","reports":[%b]}' % b",".join(written)
