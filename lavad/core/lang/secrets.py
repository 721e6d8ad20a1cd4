"""``bsub -secret``: environment variables whose values stay in files of the user and never reach the master.

Rule: values are read on the execution host, by a process of the user, when the part starts; only names are kept here.
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
    """The submitter's environment without the variables that ``named`` (the argument of ``-secret``) defines."""
    words = named.split() if isinstance(named, str) else []
    names = {word.partition("=")[0] for word in words}
    return {name: value for name, value in env.items() if name not in names}
