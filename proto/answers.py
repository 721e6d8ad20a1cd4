"""What callers get, as it goes over the wire in JSON: the answer to an ask, and the pieces of a query's output.

A key stands in an answer only where the ask has something to say under it; the ask's decision says which those are.
"""

from __future__ import annotations

from typing import TypedDict


class Result(TypedDict, total=False):
    """What became of one of many jobs, queues, hosts, GPUs or submissions: which it is, whether it was done, else why not."""

    id: str
    queue: str
    host: str
    gpu: str
    ok: bool
    why: str
    leave: int
    """badmin hclose --migrate: jobs that leave the host, and that run on there."""
    stay: int
    job: int
    """The new job of a submission; a refused one has the exit status, and seconds until it is asked again (0: it is not)."""
    default: bool
    notices: list[str]
    exit: int
    retry: int


class Change(TypedDict, total=False):
    """What became of a job, or of elements of an array (``12[3-9]``): its state now."""

    job: str
    state: str
    host: str
    """The first one that it runs or ran on."""
    status: int
    """Of one that has ended: its wait status, why it ended, LSF's name of the reason (TERM_OWNER), and who ended it."""
    why: str
    reason: str
    by: str


class TokenRow(TypedDict):
    """A token that has not ended; times are seconds since the epoch."""

    id: str
    """By which it is called back."""
    name: str
    """What its user says that it is for."""
    user: str
    """Whose it is."""
    kind: str
    """``api`` of a program, ``session`` of a browser, or ``link``, which signs in."""
    host: str
    """Where it was asked for."""
    made: float
    """When it was made."""
    used: float | None
    """When it was last asked with; None: never that this master knows of."""
    ends: float
    """When it ends."""
    this: bool
    """Whether it is the one that the request came with."""


class Answer(TypedDict, total=False):
    """The answer to an ask that is not a query."""

    job: int | str
    queue: str
    default: bool
    notices: list[str]
    results: list[Result]
    none: str
    """Why there is no result at all."""
    name: str
    group: str
    groups: list[str]
    place: int
    kept: bool
    stands: bool | None
    text: str
    state: str
    status: int
    why: str
    reason: str
    """Of a job that has ended: LSF's name of the reason (TERM_OWNER)."""
    attempt: int
    host: str
    door: str
    near: bool
    token: str
    ends: float
    """Of a token: seconds since the epoch."""
    tokens: list[TokenRow]
    cert: str
    key: str
    changes: list[Change]
    after: str
    """The cursor of the next ask for changes."""
    lost: bool
    """Changes were missed: the states of jobs are to be read again."""


class Piece(TypedDict, total=False):
    """A piece of the output of a query; the last one has the exit status."""

    out: str
    err: str
    exit: int


class Reply(Piece, total=False):
    """Any frame that a caller gets: a piece, an answer, a refusal (with an exit status), or that there is no master here."""

    ok: Answer
    refused: str
    retry: int
    """Seconds after which the command asks again by itself."""
    standby: bool
    later: bool
