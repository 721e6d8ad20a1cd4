"""A submission over REST becomes the ask that bsub would send: options as text, a small environment, the user's home."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping

from proto.names import Entry
from proto.options import OPTIONS
from web.problems import Problem
from web.rest.bodies import Submit, SubmitMany, Value

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_KNOWN = {option.name: option for option in OPTIONS if option.only != "bmod"}
_TERMINAL = ("I", "Ip", "Is", "IS", "ISp", "ISs", "IX", "K")
"""They need a terminal, or wait."""


def frame_of(body: Submit, user: str, entry: Entry | None) -> dict[str, object]:
    """The ask; ``entry``: the user on this host. Raises Problem."""
    command = _line(body.command)
    if not command.strip() and not body.script:
        raise Problem(400, "command: it is empty")
    return {"ask": "submit", "command": command or "script", "script": body.script, **_shared(body, user, entry)}


def frame_of_many(body: SubmitMany, user: str, entry: Entry | None) -> dict[str, object]:
    """The ask for several jobs; ``entry``: the user on this host. Raises Problem."""
    lines = [_line(command) for command in body.commands]
    if not all(line.strip() for line in lines):
        raise Problem(400, "commands: one is empty")
    return {"ask": "bulk", "jobs": [{"command": line} for line in lines], **_shared(body, user, entry)}


def _line(command: str | list[str]) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _shared(body: Submit | SubmitMany, user: str, entry: Entry | None) -> dict[str, object]:
    """What all jobs of a request have."""
    home, shell = (entry.home, entry.shell or "/bin/sh") if entry is not None else ("/", "/bin/sh")
    if body.cwd and not body.cwd.startswith("/"):
        raise Problem(400, "cwd: an absolute folder is expected")
    return {
        "env": {"HOME": home, "USER": user, "LOGNAME": user, "SHELL": shell, "PATH": PATH, **body.env},
        "cwd": body.cwd or home,
        "home": home,
        "shell": shell,
        "options": options_of(body.options),
    }


def options_of(given: Mapping[str, Value]) -> dict[str, str | bool | list[str]]:
    """bsub's options as lavad takes them. Raises Problem for one that only bsub itself can carry out."""
    found: dict[str, str | bool | list[str]] = {}
    for word, value in given.items():
        name = word.lstrip("-")
        row = _KNOWN.get(name)
        if name in _TERMINAL or (row is not None and not row.sent):
            raise Problem(400, f"options: -{name[:40]} is for bsub on a terminal")
        if value is None or value is False:
            continue
        found[name] = value if isinstance(value, (bool, str)) else [*value] if isinstance(value, list) else _number(value)
    return found


def _number(value: float) -> str:
    """As a person writes it: ``12345678`` for 12345678.0."""
    return str(int(value)) if value == int(value) else repr(value)


def uuid_of(user: str, what: str, key: str) -> str:
    """The same key of the same user names the same request to one address; ``what``: its method and path."""
    return hashlib.sha256(f"{user}\0{what}\0{key}".encode(errors="replace")).hexdigest()[:32]
