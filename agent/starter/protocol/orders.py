"""Orders: from the agent to the starter, and from the starter to the shepherd that has the part.

The starter answers nothing to most of them: what comes of an order is told by reports. An order about a part that is not here
is ignored. Those of the last section go to shepherds only.
"""

# No "from __future__ import annotations": the codec reads the annotations.

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from agent.starter.protocol.codec import Json, Kinds
from agent.starter.protocol.part import User
from agent.starter.protocol.reports import FirstFailure, HostUse, Root

order = Kinds("do")

# -- of the agent to the starter -----------------------------------------------------------------------------------------


@order("hello")
class Greet(NamedTuple):
    """The first order of a connection: the agent is there. Answered by ``Hello``."""

    protocol: int = 1
    """Of ``version.py``."""


@order("list")
class List(NamedTuple):
    """Asks for all parts. Answered by ``Listed``."""


@order("start")
class Start(NamedTuple):
    """Start these parts. One that is here already is reported once more; one of an old ``seq`` is refused."""

    seq: int
    """Grows from order to order for good: the starter keeps the highest on disk."""
    parts: tuple[Json, ...]
    """Each as ``part.read_part`` reads it; one that is nonsense is refused by itself."""
    templates: Mapping[str, Json]
    """What parts share, by the name that they have for it. Each is known as long as the connection lasts."""
    drop: tuple[str, ...] = ()
    """Names of templates that no later order has."""


@order("read")
class Read(NamedTuple):
    """Read a piece of a file, as the user. Answered by ``Data``."""

    id: int
    user: User
    path: str
    offset: int = 0
    limit: int = 0
    """Bytes."""


@order("folders")
class FindFolders(NamedTuple):
    """The folders in ``path`` that begin with ``prefix`` and have an entry named ``having``. Answered by ``Folders``."""

    id: str
    user: User
    path: str
    prefix: str
    having: str


@order("generations")
class FindGenerations(NamedTuple):
    """The checkpoint generations in ``path`` above number ``above``, each checked. Answered by ``Generations``."""

    id: str
    user: User
    path: str
    above: int


@order("append")
class Append(NamedTuple):
    """Add a text to a file of the user's when the part of this uid has ended, once. Answered by ``Wrote``."""

    id: str
    user: User
    path: str
    text: str
    umask: int = 0o022
    truncate: bool = False
    mkdir: bool = False


@order("deliver")
class Deliver(NamedTuple):
    """Move kept output into the user's file, ``header`` before and ``text`` behind it; then kept errors.

    Answered by ``Wrote``.
    """

    id: str
    user: User
    path: str
    from_: str
    """The kept file, which is removed then."""
    header: str = ""
    text: str = ""
    umask: int = 0o022
    truncate: bool = False
    mkdir: bool = False
    from_error: str = ""
    """The kept file with standard error, "": none."""
    error: str = ""
    """Where that goes."""
    error_truncate: bool = False


@order("forget")
class Forget(NamedTuple):
    """The master has the ends of these: the starter need not know them any more."""

    uids: tuple[str, ...]


# -- of the agent about parts; the starter passes them on to shepherds ---------------------------------------------------


class Scope(Enum):
    """Who of a part gets a signal."""

    GROUPS = "groups"
    """Every process group."""
    TASKS = "tasks"
    """The processes that were started as tasks."""
    CATCHING = "catching"
    """The tasks, or the first below them, that have a handler for it, as soon as they have."""


@order("go")
class Go(NamedTuple):
    """Every host of the job is prepared: run."""

    uid: str
    root: Root | None = None
    """Where the first host is reached; None: the job has no link between its hosts."""


@order("signal")
class Signal(NamedTuple):
    """Send a signal."""

    uids: tuple[str, ...]
    sig: int
    scope: Scope = Scope.GROUPS
    within: float = 0.0
    """For ``CATCHING``: seconds until a signal that nobody catches is reported (``SignalIgnored``)."""


@order("kill")
class Kill(NamedTuple):
    """SIGKILL everything until nothing is left."""

    uids: tuple[str, ...]
    posts: bool = False
    """Post-execution follows, as after any end."""


@order("renew")
class Renew(NamedTuple):
    """The master was heard: leases end later."""

    deadline: float
    uids: tuple[str, ...] | None = None
    """None: of all parts that have a lease."""


@order("task")
class StartTask(NamedTuple):
    """Start one task of a role job, late or again."""

    uid: str
    rank: int
    number: int
    """Of this start: a lower or equal one than before is ignored."""
    delay: float = 0.0
    """Seconds from now."""


@order("end_task")
class EndTask(NamedTuple):
    """SIGKILL one task and all below it."""

    uid: str
    rank: int
    number: int = 0
    """Of the start that is meant, 0: whichever runs. A later one is left alone."""
    asked: bool = False
    """SIGTERM first, and SIGKILL when the grace of the part is over."""


@order("finish")
class Finish(NamedTuple):
    """The master has decided that a role job ends."""

    uid: str
    first: FirstFailure | None
    """The task that ended it; None: it succeeded."""
    leave: bool = False
    """Wait for the tasks that run instead of ending them."""


@order("note")
class Note(NamedTuple):
    """What the agent saw of this host's ranks, for the report that the first host writes."""

    uid: str
    use: HostUse


class NumberedHost(NamedTuple):
    """A host of a resizable job and its number, which stays its own; ``[node_index, host]`` on the wire."""

    node_index: int
    host: str

    @classmethod
    def from_json(cls, value: list[object]) -> "NumberedHost":
        """Read it."""
        node_index, host = value
        return cls(int(str(node_index)), str(host))

    def to_json(self) -> list[object]:
        """Write it."""
        return [self.node_index, self.host]


@order("hosts")
class JobHosts(NamedTuple):
    """A resizable job has these hosts now."""

    uid: str
    hosts: tuple[NumberedHost, ...]


@order("leave")
class Leave(NamedTuple):
    """A resizable job goes on without this host: how its tasks end here says nothing about the job."""

    uid: str


# -- of the starter to a shepherd ----------------------------------------------------------------------------------------


@order("template")
class Template(NamedTuple):
    """A template under a number, for the parts that follow."""

    t: int
    fields: Json
    drop: tuple[int, ...] = ()
    """Templates that no later part has."""


@order("part")
class Begin(NamedTuple):
    """Run this part; ``p`` is what it has of its own over template ``t``."""

    t: int
    p: Json


AboutOne = Go | StartTask | EndTask | Finish | Note | JobHosts | Leave
AboutMany = Signal | Kill | Renew
ToPart = AboutOne | AboutMany
"""About parts that are here; one of many is narrowed to each part for its shepherd."""
Write = Append | Deliver
Look = Read | FindFolders | FindGenerations
Order = Greet | List | Start | Look | Write | Forget | ToPart
ToShepherd = Template | Begin | Look | Write | ToPart


def is_about(what: ToPart, uid: str) -> bool:
    """Whether an order is about a part."""
    if isinstance(what, AboutMany):
        return what.uids is None or uid in what.uids
    return what.uid == uid


def read_order(obj: Json) -> Order | ToShepherd:
    """The order that an object is; ProtocolError when it is none."""
    found: Order | ToShepherd = order.get(obj)
    return found


def find_order(obj: Json) -> Order | ToShepherd | None:
    """As ``read_order``, None where its kind is not known."""
    found: Order | ToShepherd | None = order.find(obj)
    return found


def write_order(what: Order | ToShepherd) -> Json:
    """An order as an object."""
    return order.write(what)
