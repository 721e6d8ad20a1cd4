"""What changes answer."""

from __future__ import annotations

import msgspec


class Submitted(msgspec.Struct, frozen=True):
    """A job that was submitted."""

    id: str
    queue: str
    notices: list[str]


class Changed(msgspec.Struct, frozen=True):
    """One job, host or queue: whether it was done, else why not."""

    id: str
    ok: bool
    why: str = ""


class Done(msgspec.Struct, frozen=True):
    """What became of a request to change something."""

    results: list[Changed]


class Session(msgspec.Struct, frozen=True):
    """Who is signed in. ``csrf`` goes into the header X-CSRF-Token of whatever changes something; "" with a bearer's token."""

    user: str
    cluster: str
    is_admin: bool
    queues: list[str]
    csrf: str
