"""ENV_VARS of an application profile: variables of its jobs."""

import re

from config.values.values import Scope

_ONE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=(?:'([^',\"]*)'|([^\s',\"]*))\s*(?:,|$)")


def env_vars(value: str, _: Scope) -> tuple[tuple[str, str], ...]:
    """`NAME='value',…` -> each variable once, with the last of its values; quotes are needed around blanks alone.

    Commas and double quotes separate, and are in no value. Nothing in a value is expanded.
    """
    found: dict[str, str] = {}
    at = 0
    while at < len(value):
        match = _ONE.match(value, at)
        if not match:
            raise ValueError(f"'{value[at:].strip()}' is not NAME='value'[,NAME='value' …]")
        name, quoted, bare = match.groups()
        found[name] = bare if quoted is None else quoted
        at = match.end()
    return tuple(found.items())


def show_env_vars(found: tuple[tuple[str, str], ...]) -> str:
    """As in the file."""
    return ",".join(f"{name}='{value}'" for name, value in found)
