"""What differs between two configurations, parameter by parameter, for the audit file. Secrets are not shown, as by showconf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from config.write.showconf import safe
from lavad.core.site.conf import Conf

LONGEST = 200


def differences(old: Conf, new: Conf) -> Iterator[tuple[str, str, str]]:
    """(parameter, old value, new value); "" where there is none. Sections of a file are told apart by their names."""
    was, now = dict(_flat("", msgspec.to_builtins(old))), dict(_flat("", msgspec.to_builtins(new)))
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            yield name, was.get(name, ""), now.get(name, "")


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) and "name" in item for item in value):
        for item in value:
            yield from _flat(f"{name}[{item['name']}]", {key: inner for key, inner in item.items() if key != "name"} or "there")
    else:
        shown = safe(name.rpartition(".")[2].upper(), str(value))
        yield name, shown if len(shown) <= LONGEST else shown[:LONGEST] + "..."
