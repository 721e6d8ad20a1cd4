"""What changes answer."""

from __future__ import annotations

import msgspec

from proto.answers import TokenRow


class Submitted(msgspec.Struct, frozen=True):
    """A job that was submitted."""

    id: str
    queue: str
    notices: list[str]


class Taken(msgspec.Struct, frozen=True):
    """One of several submissions: a job, or why there is none, and the seconds after which to ask again (0: it is final)."""

    id: str
    """Of the new job; empty: it was refused."""
    queue: str
    notices: list[str]
    why: str = ""
    retry: float = 0.0
    """Seconds after which to ask again; 0: the refusal is final."""


class SubmittedMany(msgspec.Struct, frozen=True):
    """What became of each command, in their order."""

    results: list[Taken]


class Listed(msgspec.Struct, frozen=True):
    """What bjobs shows of jobs: for each a record of text by the name of the field, in capitals; ERROR where there is none."""

    records: list[dict[str, str]]
    """One for each job: text by the name of the field."""


class End(msgspec.Struct, frozen=True):
    """How a job has ended: ``status`` is its wait status, ``host`` the first that it ran on."""

    state: str
    status: int = 0
    """Its wait status."""
    host: str = ""
    """The first that it ran on."""
    why: str = ""
    reason: str = ""
    """LSF's name of the reason: TERM_MEMLIMIT …"""


class JobChange(msgspec.Struct, frozen=True):
    """The state that a job, or elements of an array (``12[3-9]``), has come into.

    Of one that has ended: its wait status, why, LSF's name of the reason (TERM_MEMLIMIT), and by whom. ``status`` None: it has
    not ended, or is an array as a whole.
    """

    job: str
    """Id of the job, or elements of an array: ``12[3-9]``."""
    state: str
    host: str = ""
    """The first of its hosts."""
    status: int | None = None
    """Its wait status; None: it has not ended, or is an array as a whole."""
    why: str = ""
    reason: str = ""
    """LSF's name of the reason: TERM_MEMLIMIT …"""
    by: str = ""
    """Who ended it."""


class JobChanges(msgspec.Struct, frozen=True):
    """Changes of the caller's jobs. ``after`` is the cursor of the next request.

    ``lost``: there were others, which are not known any more: the states of jobs are to be read again.
    """

    after: str
    lost: bool
    """There were others: the states of jobs are to be read again."""
    changes: list[JobChange]


class Changed(msgspec.Struct, frozen=True):
    """One job, host or queue: whether it was done, else why not."""

    id: str
    """Of the job, host, queue or token."""
    ok: bool
    why: str = ""
    """Why it was not done."""


class Done(msgspec.Struct, frozen=True):
    """What became of a request to change something."""

    results: list[Changed]


class MadeToken(msgspec.Struct, frozen=True):
    """A new token; it is kept nowhere, so this is the only time that it is told."""

    token: str
    """It goes into the header Authorization, after ``Bearer``."""
    ends: float
    """When it ends, in seconds since the epoch."""


class Tokens(msgspec.Struct, frozen=True):
    """Tokens that have not ended, the first to end first."""

    tokens: list[TokenRow]
    """The first to end first."""


class Session(msgspec.Struct, frozen=True):
    """Who is signed in. ``csrf`` goes into the header X-CSRF-Token of whatever changes something; "" with a bearer's token."""

    user: str
    cluster: str
    is_admin: bool
    queues: list[str]
    """Queues that the caller may submit to."""
    csrf: str
    """For the header X-CSRF-Token; empty with a bearer's token."""
