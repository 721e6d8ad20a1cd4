"""The requests of callers, from JSON frames on the local socket and from gRPC servicers. Decoded by msgspec, strictly."""

from __future__ import annotations

from typing import Annotated, Any, Union

import msgspec


class Caller(msgspec.Struct, frozen=True):
    """Who asks, as the kernel or a vouching agent tells."""

    user: str
    uid: int
    host: str
    """The submission host."""


class Refused(Exception):
    """A request is refused; the text is what the user reads (LSF's words)."""

    def __init__(self, text: str, exit_code: int = 255) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


class Ask(msgspec.Struct, frozen=True, tag_field="ask", tag=str.lower, forbid_unknown_fields=True, kw_only=True):
    """A request; ``uuid`` makes a retry safe: the answer is stored with it."""

    uuid: Annotated[str, msgspec.Meta(max_length=64)] = ""
    again: bool = False
    """A retry: the caller asked this before and got no answer."""


OptionValue = str | bool | list[str]


class RoleAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One role of a submission, as a job file says it; numbers and words are checked by ``core.decide.submit.roles``."""

    name: str
    command: str = ""
    count: int = 1
    least: int = 0
    """0: all of ``count``."""
    slots: int = 1
    gpus: int = 0
    resreq: str = ""
    limits: dict[str, str] = {}
    """bsub's options of limits (``M c D F S C``) with their raw text, of one task."""
    env: dict[str, str] = {}
    cwd: str = ""
    software: str = ""
    """As of ``-a``: modules(…), conda(…), venv(…), container(…)."""
    scratch: bool = False
    restart: str = "Never"
    spread: bool = False
    kind: str = ""
    actions: list[tuple[str, str, int]] = []
    """(event, action, exit code or -1)."""


class PolicyAsk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the roles depend on each other."""

    framework: str = ""
    success: str = ""
    clean: str = "running"
    launcher_start: str = "when_ready"
    backoff: int = 6
    nproc: int = 0
    actions: list[tuple[str, str, int]] = []


class Submit(Ask, frozen=True):
    """bsub. ``options``: LSF option name without its dash to its raw text (True where it takes none, a list where repeated)."""

    command: str
    script: str = ""
    env: dict[str, str] = {}
    cwd: str = ""
    home: str = ""
    umask: int = 0o022
    shell: str = ""
    options: dict[str, OptionValue] = {}
    env_hash: str = ""
    """Set by the server, which keeps the environment by this name; what a caller sends here is overwritten."""
    restart_of: int = 0
    """brestart: the job whose checkpoint it starts from."""
    restart_from: int = 0
    """The newest whole generation there."""
    roles: list[RoleAsk] = []
    policy: PolicyAsk = PolicyAsk()


class Select(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs a command is about: ids as given (``105``, ``105[1-3]``, ``0``), or filters. "" is no filter."""

    ids: list[str] = []
    name: str = ""
    queue: str = ""
    user: str = ""
    host: str = ""
    group: str = ""
    app: str = ""
    state: str = ""
    """``run``, ``pend`` or ``susp``: all that match, also without an id."""


class Kill(Ask, frozen=True):
    """bkill; ``signal`` 0 is the usual end (INT, TERM, KILL)."""

    jobs: Select = Select()
    signal: int = 0
    now: bool = False
    """bkill -r: forget the job without waiting for its host."""
    reason: str = ""
    done: bool = False
    """bkill -d: it counts as DONE when it has ended."""


class Stop(Ask, frozen=True):
    """bstop; ``reason``: -C."""

    jobs: Select = Select()
    reason: str = ""


class Resume(Ask, frozen=True):
    """bresume; ``reason``: -C."""

    jobs: Select = Select()
    reason: str = ""


class Switch(Ask, frozen=True):
    """bswitch."""

    queue: str
    jobs: Select = Select()


class Move(Ask, frozen=True):
    """btop and bbot; ``place`` counts from 1."""

    job: str
    top: bool
    place: int = 1
    own: bool = False
    """btop -u: among the jobs of its owner, also where an administrator asks."""


class Modify(Ask, frozen=True):
    """bmod: ``options`` as in Submit; an option with ``n`` behind it resets."""

    job: str
    options: dict[str, OptionValue] = {}
    command: str = ""
    script: str = ""
    """With ``command``: the script that it names (``-Zs``)."""


class Requeue(Ask, frozen=True):
    """brequeue; ``reason``: -C."""

    jobs: Select = Select()
    reason: str = ""
    hold: bool = False
    states: list[str] = []


class Checkpoint(Ask, frozen=True):
    """bchkpnt; ``period`` in minutes, -1: as it is."""

    jobs: Select = Select()
    kill: bool = False
    force: bool = False
    period: int = -1


class Migrate(Ask, frozen=True):
    """bmig."""

    jobs: Select = Select()
    hosts: list[str] = []
    force: bool = False


class Resize(Ask, frozen=True):
    """bresize; ``what``: release (``hosts``), request (``least`` to ``most`` slots more) or cancel."""

    job: str
    what: str
    hosts: str = ""
    least: int = 1
    most: int = 0
    cancel: bool = False
    """-c: what was asked for before is cancelled first."""
    command: str = ""
    """-rnc."""
    silent: bool = False
    """-rncn: no command is run."""


class AddGroup(Ask, frozen=True):
    """bgadd; ``limit`` None: no limit."""

    group: str
    limit: int | None = None


class DropGroup(Ask, frozen=True):
    """bgdel; group ``0``: all that are empty, of ``user`` ("": the caller, ``all``); ``below``: of it and those under it."""

    group: str
    user: str = ""
    below: bool = False


class ChangeGroup(Ask, frozen=True):
    """bgmod -L and -Ln."""

    group: str
    limit: int | None = None


class AddReservation(Ask, frozen=True):
    """brsvadd; times and names as given. ``slots``: slots, or hosts where ``unit`` is ``host``."""

    slots: int = 0
    unit: str = "slot"
    hosts: str = ""
    resreq: str = ""
    users: str = ""
    group: str = ""
    system: bool = False
    begin: str = ""
    end: str = ""
    window: str = ""
    open: bool = False
    name: str = ""
    no_suspend: bool = False
    queues: str = ""
    description: str = ""


class ChangeReservation(Ask, frozen=True):
    """brsvmod; ``verb``: its subcommand. What is "" or None stays as it is."""

    name: str
    verb: str = ""
    slots: int = 0
    hosts: str = ""
    resreq: str = ""
    users: str = ""
    begin: str = ""
    end: str = ""
    window: str = ""
    dates: str = ""
    open: bool | None = None
    no_suspend: bool | None = None
    queues: str | None = None
    description: str | None = None


class DropReservation(Ask, frozen=True):
    """brsvdel."""

    name: str
    force: bool = False


class Post(Ask, frozen=True):
    """bpost."""

    job: str
    text: str
    number: int = 0
    body: str = ""


class Run(Ask, frozen=True):
    """brun; ``force``: -f, ``hosts`` as of -m, ``afresh``: -b."""

    job: str
    hosts: list[str] = []
    force: bool = False
    afresh: bool = False


class Judge(Ask, frozen=True):
    """bwait: the state of a dependency condition."""

    condition: str


class Hosts(Ask, frozen=True, kw_only=True):
    """badmin hopen and hclose."""

    hosts: list[str] = []
    close: bool
    comment: str = ""


class Queues(Ask, frozen=True, kw_only=True):
    """badmin qopen qclose qact qinact; ``what`` is that word."""

    queues: list[str] = []
    what: str
    comment: str = ""


class Reconfig(Ask, frozen=True):
    """badmin reconfig."""


class Lease(Ask, frozen=True):
    """badmin lease extend: no rerunnable job is fenced for this many seconds."""

    seconds: float


class Perfmon(Ask, frozen=True):
    """badmin perfmon: ``what`` is ``start``, ``stop``, ``setperiod`` or ``view``; ``period`` in seconds, 0: the usual one."""

    what: str
    period: int = 0
    json: bool = False


class Query(Ask, frozen=True):
    """A command that only shows: its name and options; answered with text."""

    command: str
    options: dict[str, OptionValue] = {}
    words: list[str] = []
    width: int = 80


class Wait(Ask, frozen=True):
    """bsub -K: answer when the job is in one of the states ``started`` or ``finished``."""

    job: int
    until: str = "finished"


class Attach(Ask, frozen=True):
    """bsub -I: answer when an attempt later than ``after`` waits for its user, or the job has ended."""

    job: int
    after: int = 0


class Peek(Ask, frozen=True):
    """bpeek: the output of a job from ``offset`` on; an answer for each piece, at the latest one at its end."""

    job: str
    select: Select = Select()
    follow: bool = False


def any_ask() -> Any:
    """The union of all asks, as msgspec decodes it: by the field ``ask``, the class's name in small letters."""
    return Union[tuple(Ask.__subclasses__())]  # noqa: UP007 - made from what is there
