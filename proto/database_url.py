"""Which databases a store may be in, by their URL (LAVA_DATABASE_URL): said by ``badmin ckconfig``, and by lavad at its start.

The grammar is that of SQLAlchemy's URLs, which a command would load for a fifth of a second.
"""

from __future__ import annotations

import re
from typing import Literal

from proto.numbers import find_number

_URL = re.compile(
    r"(?P<kind>\w+)(?:\+\w+)?://(?:[^:/]*(?::[^@]*)?@)?(?:\[[^/?]+\]|[^/:?]+)?(?::(?P<port>[^/?]*))?(?:/(?P<name>[^?]*))?(?:\?.*)?",
    re.ASCII | re.DOTALL,
)
_KINDS: dict[str, Literal["sqlite", "postgresql"]] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
}


def find_kind(url: str) -> Literal["sqlite", "postgresql"] | None:
    """None: this is a URL of no such database."""
    return _KINDS.get(url.partition(":")[0].partition("+")[0])


def why_no_database(url: str) -> str:
    """Why no store can be there; "": one can. Nothing of the URL behind its kind is said, as it may have a password."""
    found = _URL.fullmatch(url)
    if found is None:
        return "this is not a database URL: sqlite:///FILE or postgresql://USER@HOST/NAME is expected"
    kind = find_kind(url)
    if kind is None:
        return f"{found['kind'][:50]}: only sqlite and postgresql are supported"
    if found["port"] and find_number(found["port"], 1, 65535) is None:
        return "its port is no number from 1 to 65535 (in a password, @ is written as %40)"
    if kind == "sqlite" and found["name"] in (None, "", ":memory:"):
        return "a sqlite store needs a file"
    return ""
