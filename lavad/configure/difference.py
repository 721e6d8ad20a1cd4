"""What differs between two configurations, parameter by parameter, for the audit file. Secrets are not shown, as by showconf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

import msgspec

from config.write.showconf import safe
from lavad.core.site.conf import Conf

LONGEST = 200
"""Characters of a value that are shown; of a longer one, from a little before the first that differs."""
_BEFORE = 20


def differences(old: Conf, new: Conf) -> Iterator[tuple[str, str, str]]:
    """(parameter, old value, new value); "" where there is none. Sections of a file are told apart by their names."""
    was, now = dict(_flat("", "", msgspec.to_builtins(old))), dict(_flat("", "", msgspec.to_builtins(new)))
    for place in sorted(was.keys() | now.keys()):
        before, after = was.get(place, ""), now.get(place, "")
        if before != after:
            name, parameter = place
            yield name, *_shown(safe(parameter, before), safe(parameter, after))


def _flat(name: str, parameter: str, value: object) -> Iterator[tuple[tuple[str, str], str]]:
    """((where it stands, the parameter), its text)."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), str(key).upper(), inner)
    elif isinstance(value, list | tuple) and (sections := _sections(value)):
        for title, inner in sections.items():
            yield from _flat(f"{name}[{title}]", parameter, inner or "there")
    else:
        yield (name, parameter), str(value)


def _sections(value: Sequence[object]) -> dict[str, object]:
    """The sections of a list by their names: records with a name, or pairs of a name and what it stands for; {}: it has none."""
    found: dict[str, object] = {}
    for item in value:
        if isinstance(item, Mapping) and "name" in item:
            title, inner = item["name"], {key: one for key, one in item.items() if key != "name"}
        elif isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str):
            title, inner = item
        else:
            return {}
        number = next(number for number in count(1) if (title if number == 1 else f"{title}#{number}") not in found)
        found[title if number == 1 else f"{title}#{number}"] = inner
    return found


def _shown(old: str, new: str) -> tuple[str, str]:
    if len(old) <= LONGEST and len(new) <= LONGEST:
        return old, new
    first = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    first = max(0, first - _BEFORE)
    return _cut(old, first), _cut(new, first)


def _cut(text: str, first: int) -> str:
    piece = text[first : first + LONGEST]
    return f"{'...' if first and text else ''}{piece}{'...' if first + LONGEST < len(text) else ''}"
