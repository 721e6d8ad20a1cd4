"""What ``bsub -secret`` names: variables whose values lie in files of the user's, and never come to the master.

Rule: a value is read on the execution host, by the user's own process, when the part starts; here there are names only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lavad.core.lang.asks import OptionValue, Refused

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def read(text: str, home: str, folder: str) -> tuple[tuple[str, str], ...]:
    """(variable, path) for each word ``VARIABLE`` (a file in ``folder`` below ``home``) or ``VARIABLE=file``. Raises Refused."""
    found: dict[str, str] = {}
    for word in text.split():
        name, equals, path = word.partition("=")
        if not _NAME.fullmatch(name):
            raise Refused(f"{name[:80]}: Bad name of a secret: a variable's name is expected")
        if path.startswith("~/"):
            path = f"{home}/{path[2:]}"
        if not equals:
            path = f"{home}/{folder}/{name}"
        if not path.startswith("/") or len(path) > 4095:
            raise Refused(f"{name}: Bad secret: its file must be an absolute path or one below ~/")
        found[name] = path
    if not found:
        raise Refused("Bad secret specification")
    return tuple(found.items())


def without_secrets(env: Mapping[str, str], named: OptionValue | None) -> dict[str, str]:
    """The environment to keep for a job: what ``named`` (``-secret``) makes of its own is not taken from the submitter's."""
    words = named.split() if isinstance(named, str) else []
    names = {word.partition("=")[0] for word in words}
    return {name: value for name, value in env.items() if name not in names}
