"""The requests of callers, from JSON frames on the local socket and from gRPC servicers. Decoded by msgspec, strictly."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Union

import msgspec

from lavad.core.lang import bounds as b
from lavad.core.lang.bulk_asks import BulkJob
from lavad.core.lang.role_asks import PolicyAsk, RoleAsk


class Caller(msgspec.Struct, frozen=True):
    """Who asks; ``host``: the submission host; ``local``: it is the master's, whose kernel says so, not an agent."""

    user: str
    uid: int
    host: str
    may_administer: bool = True
    """Whether administrators have their rights on that host."""
    local: bool = False


class Refused(Exception):
    """A request is refused, in LSF's words; ``retry``: seconds after which the command tries again by itself, 0: it does not."""

    def __init__(self, text: str, exit_code: int = 255, retry: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code
        self.retry = retry


class Faulty(Refused):
    """lavad cannot decide, apply or store this request, a fault of its own: another try does no better."""


class Overtaken(Refused):
    """Refused because an earlier request of the same caller was."""


class Ask(msgspec.Struct, frozen=True, tag_field="ask", tag=str.lower, forbid_unknown_fields=True, kw_only=True):
    """A request; ``uuid`` makes a retry (``again``) safe: its answer is stored with it; ``v``: protocol (proto/version.py)."""

    most_bytes: ClassVar[int] = b.LARGE
    """The largest frame that this kind may come in."""
    uuid: b.Uuid = ""
    again: bool = False
    v: b.Signed = 1
    token: b.Line = ""
    """Who asks, as the master has signed it (``Token``); "": who the kernel or the host's agent says."""


OptionValue = str | bool | list[str]


class Submit(Ask, frozen=True):
    """bsub. ``options``: LSF option name without its dash to its raw text (True where it takes none, a list where repeated)."""

    most_bytes: ClassVar[int] = b.LARGEST
    command: b.Command
    script: b.Script = ""
    env: b.Environment = {}
    cwd: b.Path = ""
    home: b.Path = ""
    umask: b.Umask = 0o022
    shell: b.Path = ""
    options: b.Options = {}
    env_hash: b.Word = ""
    esub: b.Line = ""
    """Set by the server, which keeps the environment by this hash, and has from it what -a named; a caller's are overwritten."""
    restart_of: b.Job = 0
    restart_index: b.Number = 0
    restart_from: b.Number | None = None
    """brestart: the job (of an element also the index) that goes on, and its newest whole generation on the caller's host."""
    checkpoint_folder: b.Path = ""
    """That of ``-k`` (with ``stage`` that of the copies) on the caller's host, absolute and without links."""
    checkpoint_probe: b.Path = ""
    checkpoint_mount: b.Path = ""
    """A file that the caller has written there, for hosts to look for ("": there could be none), and where its file system is."""
    roles: Annotated[list[RoleAsk], msgspec.Meta(max_length=1_000)] = []
    policy: PolicyAsk = PolicyAsk()
    check: bool = False  # say whether it would be taken, and submit nothing


class Bulk(Ask, frozen=True):
    """Several submissions, as bsub -pack has them, made in order. ``results`` of the answer has a row for each: ``ok``, ``job``,
    ``queue``, ``default``, ``notices``, or ``why``, ``exit``, ``retry``. Sent again, each is made once, wherever the first ended.
    """

    most_bytes: ClassVar[int] = b.LARGEST
    jobs: Annotated[list[BulkJob], msgspec.Meta(max_length=b.MAX_BULK)]
    env: b.Environment = {}
    cwd: b.Path = ""
    home: b.Path = ""
    umask: b.Umask = 0o022
    shell: b.Path = ""
    options: b.Options = {}


class Select(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs a command is about: ids as given (``105``, ``105[1-3]``, ``0``), or filters. "" is no filter."""

    ids: b.Ids = []
    name: b.JobName = ""
    queue: b.Name = ""
    user: b.Name = ""
    host: b.Name = ""
    group: b.Path = ""
    app: b.Name = ""
    service_class: b.Name = ""
    state: b.Word = ""  # run, pend or susp: all that match, also without an id


class Kill(Ask, frozen=True):
    """bkill; ``signal`` 0 is the usual end (INT, TERM, KILL)."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    signal: b.Signed = 0
    now: bool = False
    """bkill -r: forget the job without waiting for its host."""
    reason: b.Line = ""
    done: bool = False
    """bkill -d: it counts as DONE when it has ended."""


class Stop(Ask, frozen=True):
    """bstop; ``reason``: -C."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    reason: b.Line = ""


class Resume(Ask, frozen=True):
    """bresume; ``reason``: -C."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    reason: b.Line = ""


class Switch(Ask, frozen=True):
    """bswitch."""

    most_bytes: ClassVar[int] = b.LISTS
    queue: b.Name
    jobs: Select = Select()


class Move(Ask, frozen=True):
    """btop and bbot; ``place`` counts from 1."""

    job: b.JobId
    top: bool
    place: b.Signed = 1
    own: bool = False
    """btop -u: among the jobs of its owner, also where an administrator asks."""


class Modify(Ask, frozen=True):
    """bmod: ``options`` as in Submit; an option with ``n`` behind it resets."""

    most_bytes: ClassVar[int] = b.LARGEST
    job: b.JobId
    options: b.Options = {}
    command: b.Command = ""
    script: b.Script = ""
    """With ``command``: the script that it names (``-Zs``)."""


class Requeue(Ask, frozen=True):
    """brequeue; ``reason``: -C."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    reason: b.Line = ""
    hold: bool = False
    states: b.Words = []


class Checkpoint(Ask, frozen=True):
    """bchkpnt; ``period`` in minutes, -1: as it is."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    kill: bool = False
    force: bool = False
    period: b.Signed = -1


class Migrate(Ask, frozen=True):
    """bmig."""

    most_bytes: ClassVar[int] = b.LISTS
    jobs: Select = Select()
    hosts: b.Names = []
    force: bool = False


class Resize(Ask, frozen=True):
    """bresize; ``what``: release (``hosts``), request (``least`` to ``most`` slots more) or cancel."""

    job: b.JobId
    what: b.Word
    hosts: b.Text = ""
    least: b.Signed = 1
    most: b.Signed = 0
    cancel: bool = False
    """-c: what was asked for before is cancelled first."""
    command: b.Line = ""
    """-rnc."""
    silent: bool = False
    """-rncn: no command is run."""


class AddGroup(Ask, frozen=True):
    """bgadd; ``limit`` None: no limit."""

    group: b.Path
    limit: b.Signed | None = None


class DropGroup(Ask, frozen=True):
    """bgdel; group ``0``: all that are empty, of ``user`` ("": the caller, ``all``); ``below``: of it and those under it."""

    group: b.Path
    user: b.Name = ""
    below: bool = False


class ChangeGroup(Ask, frozen=True):
    """bgmod -L and -Ln."""

    group: b.Path
    limit: b.Signed | None = None


class AddReservation(Ask, frozen=True):
    """brsvadd; times and names as given. ``slots``: slots, or hosts where ``unit`` is ``host``."""

    slots: b.Signed = 0
    unit: b.Word = "slot"
    hosts: b.Text = ""
    resreq: b.Line = ""
    users: b.Text = ""
    group: b.Name = ""
    system: bool = False
    begin: b.Line = ""
    end: b.Line = ""
    window: b.Line = ""
    open: bool = False
    name: b.Name = ""
    no_suspend: bool = False
    queues: b.Text = ""
    description: b.Line = ""


class ChangeReservation(Ask, frozen=True):
    """brsvmod; ``verb``: its subcommand. What is "" or None stays as it is."""

    name: b.Name
    verb: b.Word = ""
    slots: b.Signed = 0
    hosts: b.Text = ""
    resreq: b.Line = ""
    users: b.Text = ""
    begin: b.Line = ""
    end: b.Line = ""
    window: b.Line = ""
    dates: b.Line = ""
    open: bool | None = None
    no_suspend: bool | None = None
    queues: b.Text | None = None
    description: b.Line | None = None


class DropReservation(Ask, frozen=True):
    """brsvdel."""

    name: b.Name
    force: bool = False


class Post(Ask, frozen=True):
    """bpost; ``select``: -J, the caller's job of that name that was submitted last, where ``job`` is ""."""

    most_bytes: ClassVar[int] = b.LISTS
    job: b.JobId
    text: b.Text
    number: b.Signed = 0
    body: b.Attached = ""
    select: Select = Select()


class Run(Ask, frozen=True):
    """brun; ``force``: -f, ``hosts`` as of -m, ``afresh``: -b."""

    job: b.JobId
    hosts: b.Names = []
    force: bool = False
    afresh: bool = False


class Judge(Ask, frozen=True):
    """bwait: the state of a dependency condition."""

    condition: b.Text


class Hosts(Ask, frozen=True, kw_only=True):
    """badmin hopen and hclose; ``migrate``: jobs that can start elsewhere leave the hosts that are closed."""

    hosts: b.Names = []
    close: bool
    migrate: bool = False
    comment: b.Line = ""


class Gpus(Ask, frozen=True, kw_only=True):
    """badmin gpuopen and gpuclose; each name is HOST:ID[,ID ...], an ID is an index or a UUID."""

    gpus: b.Names
    close: bool
    comment: b.Line = ""


class Queues(Ask, frozen=True, kw_only=True):
    """badmin qopen qclose qact qinact; ``what`` is that word."""

    queues: b.Names = []
    what: b.Word
    comment: b.Line = ""


class Reconfig(Ask, frozen=True):
    """badmin reconfig."""


class Lease(Ask, frozen=True):
    """badmin lease extend: no rerunnable job is fenced for this many seconds."""

    seconds: b.Seconds


class Perfmon(Ask, frozen=True):
    """badmin perfmon: ``what`` is ``start``, ``stop``, ``setperiod`` or ``view``; ``period`` in seconds, 0: the usual one."""

    what: b.Word
    period: b.Signed = 0
    json: bool = False


class Query(Ask, frozen=True):
    """A command that only shows: its name and options; answered with text."""

    most_bytes: ClassVar[int] = b.LARGEST
    command: b.Word
    options: b.QueryOptions = {}
    words: b.Ids = []
    width: b.Signed = 80


class Wait(Ask, frozen=True):
    """bsub -K: answer when the job is in one of the states ``started`` or ``finished``."""

    job: b.Job
    until: b.Word = "finished"


class Changes(Ask, frozen=True):
    """What became of the caller's jobs after a cursor ("": from now on), waited for; ``every``: that something has happened."""

    after: b.Word = ""
    wait: b.Seconds = 0.0
    every: bool = False


class Attach(Ask, frozen=True):
    """bsub -I: answer when an attempt later than ``after`` waits for its user, or the job has ended."""

    job: b.Job
    after: b.Signed = 0


class Peek(Ask, frozen=True):
    """bpeek: the output of a job; an answer for each piece, the last one at its end, an empty one while it writes nothing."""

    job: b.JobId
    select: Select = Select()
    follow: bool = False
    last: b.Bytes = 0
    """So many bytes of the end of each file, without LSF's line that says which file it was; 0: all, as bpeek shows it."""


def any_ask() -> Any:
    """The union of all asks, as msgspec decodes it: by the field ``ask``, the class's name in small letters."""
    return Union[tuple(Ask.__subclasses__())]  # noqa: UP007 - made from what is there
