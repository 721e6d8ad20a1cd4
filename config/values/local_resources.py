"""LSF_LOCAL_RESOURCES: what a host says of itself that the cluster's files need not say."""

import re
from typing import NamedTuple

from config.values import values as v
from config.values.fields import shortened

_ITEM = re.compile(r"\[([^\[\]]*)\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class LocalResources(NamedTuple):
    """A host's own type ("": what is found out) and resources: name to value, boolean ones to ""."""

    type: str
    resources: dict[str, str]


NONE = LocalResources("", {})


def read_local(text: str) -> LocalResources:
    """``[resource NAME] [resourcemap VALUE*NAME] [type NAME]``; raises ValueError."""
    kind = ""
    found: dict[str, str] = {}
    for item in _ITEM.findall(text):
        word, value = [*item.split(maxsplit=1), "", ""][:2]
        amount, star, name = value.strip().rpartition("*")
        if not _NAME.fullmatch(name) or bool(star) is not (word == "resourcemap"):
            raise ValueError(f"[{shortened(item)}] is not [resource NAME] or [resourcemap VALUE*NAME]")
        match word:
            case "type":
                kind = name
            case "resource" | "resourcemap":
                found[name] = amount.strip()
            case _:
                raise ValueError(f"[{word} …]: it is resource, resourcemap or type")
    if left := _ITEM.sub("", text).strip():
        raise ValueError(f"{shortened(left)} is not [resource NAME], [resourcemap VALUE*NAME] or [type NAME]")
    return LocalResources(kind, found)


def local_resources(value: str, _: v.Scope) -> str:
    """As it is, where it can be read."""
    read_local(value)
    return value
