"""What requests carry: bodies in JSON, read strictly."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request

from web.problems import Problem

MOST_AT_ONCE = 5_000
B = TypeVar("B")
Value = str | int | float | bool | list[str] | None
Text = Annotated[str, Meta(max_length=8192)]
Ids = Annotated[list[Annotated[str, Meta(max_length=511)]], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all."""


class Submit(Body, frozen=True):
    """A job: ``command`` is a line of the shell, or the words of a command; ``options`` are bsub's, without their dash."""

    command: str | list[str]
    """A line of the shell, or the words of a command."""
    options: dict[str, Value] = {}
    script: str = ""
    """The job's script, in place of the command, which then only names it."""
    env: dict[str, str] = {}
    cwd: Text = ""
    """An absolute folder; "": the user's home."""


class SubmitMany(Body, frozen=True):
    """Jobs that have all but their command in common; at most 5,000."""

    commands: Annotated[list[str | list[str]], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    """Each a line of the shell, or words."""
    options: dict[str, Value] = {}
    env: dict[str, str] = {}
    cwd: Text = ""
    """An absolute folder; empty: the user's home."""


class Modify(Body, frozen=True):
    """bmod's options, without their dash; ``On`` of an option ``O`` resets it."""

    options: dict[str, Value] = {}
    command: str = ""
    """The new command; empty: as it was."""


class Kill(Body, frozen=True):
    """``signal`` 0 is the usual end; ``forget``: without waiting for the host (bkill -r)."""

    signal: Annotated[int, Meta(ge=0, le=64)] = 0
    """Number; 0: the usual end."""
    reason: Text = ""
    forget: bool = False
    """Without waiting for the host (bkill -r)."""


class KillMany(Body, frozen=True):
    """Jobs to end, as ``bkill ID…``."""

    ids: Ids
    """Jobs, elements or arrays."""
    reason: Text = ""


class Listing(Body, frozen=True):
    """Jobs, and the fields that ``bjobs -o`` shows of them."""

    ids: Ids
    """Jobs, elements or arrays."""
    fields: Annotated[str, Meta(min_length=1, max_length=511)]
    """Names of ``bjobs -o``, with spaces between them."""


class Because(Body, frozen=True):
    """Why."""

    reason: Text = ""


class Requeue(Body, frozen=True):
    """``hold``: it waits until it is resumed; ``ended``: also of a job that has ended."""

    reason: Text = ""
    hold: bool = False
    """It waits until it is resumed."""
    ended: bool = False
    """Also one that has ended."""


class Switch(Body, frozen=True):
    """To another queue."""

    queue: Annotated[str, Meta(max_length=511)]


class Move(Body, frozen=True):
    """To the top or the bottom of its queue."""

    top: bool
    """To the top; else to the bottom."""
    place: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 1
    """From there, from 1."""


class Comment(Body, frozen=True):
    """Why, as badmin -C has it."""

    comment: Text = ""
    """Why, as badmin -C has it."""


class MakeToken(Body, frozen=True):
    """A token for programs."""

    name: Annotated[str, Meta(max_length=64)] = ""
    """What it is for, as the list of tokens shows it."""
    hours: Annotated[float, Meta(gt=0, le=168)] = 24.0
    """How long it serves."""


async def read(request: Request, kind: type[B]) -> B:
    """The body; an empty one has the defaults. Raises Problem."""
    data: bytes = await request.state.body()
    if data and request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, "application/json is expected")
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"The body does not read: {error}") from None
