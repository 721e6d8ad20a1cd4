"""What requests carry: bodies in JSON, read strictly."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta
from starlette.requests import Request

from web.problems import Problem

MOST = 16 << 20
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
    options: dict[str, Value] = {}
    script: str = ""
    """The job's script, in place of the command, which then only names it."""
    env: dict[str, str] = {}
    cwd: Text = ""
    """An absolute folder; "": the user's home."""


class SubmitMany(Body, frozen=True):
    """Jobs that have all but their command in common; at most 5,000."""

    commands: Annotated[list[str | list[str]], Meta(min_length=1, max_length=MOST_AT_ONCE)]
    options: dict[str, Value] = {}
    env: dict[str, str] = {}
    cwd: Text = ""


class Modify(Body, frozen=True):
    """bmod's options, without their dash; ``On`` of an option ``O`` resets it."""

    options: dict[str, Value] = {}
    command: str = ""


class Kill(Body, frozen=True):
    """``signal`` 0 is the usual end; ``forget``: without waiting for the host (bkill -r)."""

    signal: Annotated[int, Meta(ge=0, le=64)] = 0
    reason: Text = ""
    forget: bool = False


class KillMany(Body, frozen=True):
    """Jobs to end, as ``bkill ID…``."""

    ids: Ids
    reason: Text = ""


class Listing(Body, frozen=True):
    """Jobs, and the fields that ``bjobs -o`` shows of them."""

    ids: Ids
    fields: Annotated[str, Meta(min_length=1, max_length=511)]


class Because(Body, frozen=True):
    """Why."""

    reason: Text = ""


class Requeue(Body, frozen=True):
    """``hold``: it waits until it is resumed; ``ended``: also of a job that has ended."""

    reason: Text = ""
    hold: bool = False
    ended: bool = False


class Switch(Body, frozen=True):
    """To another queue."""

    queue: Annotated[str, Meta(max_length=511)]


class Move(Body, frozen=True):
    """To the top or the bottom of its queue."""

    top: bool
    place: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 1


class Comment(Body, frozen=True):
    """Why, as badmin -C has it."""

    comment: Text = ""


class MakeToken(Body, frozen=True):
    """A token for programs."""

    name: Annotated[str, Meta(max_length=64)] = ""
    """What it is for, as the list of tokens shows it."""
    hours: Annotated[float, Meta(gt=0, le=168)] = 24.0
    """How long it serves."""


async def read(request: Request, kind: type[B]) -> B:
    """The body; an empty one has the defaults. Raises Problem."""
    size = request.headers.get("content-length", "0")
    if size.isdigit() and int(size) > MOST:
        raise Problem(413, f"at most {MOST >> 20} MB")
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST:
            raise Problem(413, f"at most {MOST >> 20} MB")
    if data and request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Problem(415, "application/json is expected")
    try:
        return msgspec.json.decode(bytes(data) or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"The body does not read: {error}") from None
