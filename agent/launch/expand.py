"""``%J`` and its companions in file names and folders."""

from __future__ import annotations

import re
from collections.abc import Mapping

_MARK = re.compile(r"%[%JIUPGHRT]")


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace ``%X`` by ``values["X"]``; a letter that is not among them stays as it is, ``%%`` is one percent sign."""
    if "%" not in text:
        return text
    return _MARK.sub(lambda mark: "%" if mark[0] == "%%" else values.get(mark[0][1], mark[0]), text)


def job_values(key: int, user: str, project: str, group: str, host: str) -> dict[str, str]:
    """The values for one job: id, index (0 for a job that is no element), user, project, user group, host."""
    return {"J": str(key & 0xFFFFFFFF), "I": str(key >> 32), "U": user, "P": project, "G": group, "H": host}
