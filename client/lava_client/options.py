"""The options of a submission: plain names for those of bsub, and the ask that they become."""

from __future__ import annotations

import os
import reprlib
import shlex
from datetime import timedelta
from typing import TYPE_CHECKING

from lava_client.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

NAMES = {
    "name": "J",
    "queue": "q",
    "slots": "n",
    "resreq": "R",
    "hosts": "m",
    "gpu": "gpu",
    "run_limit": "W",
    "estimate": "We",
    "memory": "M",
    "output": "o",
    "error": "e",
    "input": "i",
    "project": "P",
    "depends": "w",
    "group": "g",
    "app": "app",
    "rerunnable": "r",
    "exclusive": "x",
    "held": "H",
    "launch": "a",
    "description": "Jd",
    "priority": "sp",
    "requeue": "Q",
}
"""Readable names of bsub's options; any other option goes by its own name."""
DEFAULTS = (("LSB_DEFAULTQUEUE", "q"), ("LSB_DEFAULTPROJECT", "P"), ("LSB_DEFAULT_JOBGROUP", "g"))


def options_of(given: Mapping[str, object]) -> dict[str, object]:
    """bsub's options by their own names. Besides ``NAMES``: ``ranks`` (``-n`` with ``-a mpi``) and ``gpus``, a number."""
    asked = {NAMES.get(name, name): value for name, value in given.items() if value is not None and value is not False}
    ranks, gpus, launch = asked.pop("ranks", None), asked.pop("gpus", None), asked.pop("a", [])
    found = {name: _text(value) for name, value in asked.items()}
    words = [str(word) for word in launch] if isinstance(launch, (list, tuple)) else [str(launch)]
    if ranks is not None:
        found["n"] = str(ranks)
        words.append("mpi")
    if words:
        found["a"] = words
    if gpus:
        found["gpu"] = f"num={gpus}"
    return found


def _text(value: object) -> object:
    if value is True:
        return True
    if isinstance(value, timedelta):
        minutes = max(1, -(-int(value.total_seconds()) // 60))
        return f"{minutes // 60}:{minutes % 60:02}"
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return str(value)


def submission(
    command: str,
    options: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: str | None,
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The ask that bsub would send for this command. Raises Refused where it cannot be sent as text."""
    passed = {name: value for name, value in {**environ, **(env or {})}.items() if is_text(name + value)}
    try:
        folder = os.path.abspath(cwd or os.getcwd())
    except FileNotFoundError:
        raise Refused("The current working directory no longer exists") from None
    frame = {
        "command": command,
        "script": "",
        "env": passed,
        "cwd": folder,
        "home": environ.get("HOME") or os.path.expanduser("~"),
        "umask": _umask(),
        "shell": environ.get("SHELL", ""),
        "options": {**_defaults(options, environ), **options},
    }
    _refuse_bytes(frame)
    return frame


def submission_from_afar(
    command: str, options: Mapping[str, object], environ: Mapping[str, str], cwd: str | None, env: Mapping[str, str]
) -> dict[str, Any]:
    """The same over REST: nothing of this machine goes along but ``env``; without ``cwd`` it is the user's home there."""
    passed = {name: value for name, value in env.items() if is_text(name + value)}
    frame = {"command": command, "env": passed, "cwd": cwd or "", "options": {**_defaults(options, environ), **options}}
    _refuse_bytes(frame)
    return frame


def _defaults(options: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    return {option: environ[name] for name, option in DEFAULTS if environ.get(name) and option not in options}


def _refuse_bytes(frame: Mapping[str, Any]) -> None:
    for what in ("command", "cwd"):
        refuse_bytes(f"The {what}", str(frame[what]))
    for name, value in frame["options"].items():
        for one in value if isinstance(value, list) else [value]:
            refuse_bytes(f"-{name}", str(one))


def refuse_bytes(what: str, text: str) -> None:
    """Raises Refused where the text cannot be sent."""
    if not is_text(text):
        raise Refused(f"{what} holds bytes that are not UTF-8")


def is_text(value: str) -> bool:
    """Whether it can be sent, as UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _umask() -> int:
    """This process's, without changing it, as other threads may make files meanwhile."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022


def command_line(command: str | Sequence[str]) -> str:
    """A shell command as it is; words as a shell command that runs just these words."""
    try:
        return command if isinstance(command, str) else shlex.join(os.fspath(word) for word in command)
    except TypeError:
        raise TypeError(f"a command is a string, or a list of strings and paths, not {reprlib.repr(command)}") from None
