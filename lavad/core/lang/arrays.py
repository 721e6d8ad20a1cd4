"""Job names with index lists (`bsub -J`) and job ids with index lists (arguments of bkill, bjobs and others).

Rule: text comes in, a name or an id with its `Ranges` goes out; the errors' texts are LSF's.
"""

from __future__ import annotations

import re

import msgspec

from lavad.core.lang.ranges import EMPTY, MAX_INDEX, Ranges

__all__ = ["EMPTY", "ArrayError", "ArraySpec", "Ranges", "name_of_command", "one_line", "parse_job_id", "parse_job_name"]

MAX_NAME = 4094
_ARRAY = re.compile(r"([^\[\]]*)\[([^\[\]]*)\](?:%(\d{1,10}))?", re.ASCII)
_JOB_ID = re.compile(r"(\d{1,10})(?:\[([^\[\]]*)\])?", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class ArrayError(ValueError):
    """The message is the line a user sees, without `Job not submitted.`"""


class ArraySpec(msgspec.Struct, frozen=True):
    """What `-J 'name[indices]%limit'` asks for."""

    name: str
    indices: Ranges
    limit: int | None = None

    def text(self) -> str:
        limit = "" if self.limit is None else f"%{self.limit}"
        return f"{self.name}[{self.indices.text()}]{limit}"


def one_line(command: str) -> str:
    """A command as a listing shows it."""
    return command.rstrip("\n").replace("\n", ";")


def name_of_command(command: str) -> str:
    """What a job without a name is called."""
    return one_line(command)[:MAX_NAME]


def parse_job_name(text: str, max_index: int = 1000) -> ArraySpec | str:
    """A plain name comes back as it is."""
    if len(text) > MAX_NAME or _CONTROL.search(text):
        raise ArrayError("Bad job name")
    if "[" not in text and "]" not in text:
        return text
    match = _ARRAY.fullmatch(text.rstrip(" "))
    if match is None or (match[3] is not None and int(match[3]) == 0):
        raise ArrayError("Bad job name")
    # the largest index decides before any set is built: `[1-2000000000]` must cost nothing
    if any(len(number) > 10 or int(number) > max_index for number in _bounds(match[2])):
        raise ArrayError("Job array index too large")
    try:
        indices = Ranges.parse(match[2])
    except ValueError:
        raise ArrayError("Bad job name") from None
    return ArraySpec(match[1], indices, int(match[3]) if match[3] else None)


def _bounds(text: str) -> list[str]:
    """First and last indices in an index list, steps left out; nothing if it is malformed (the parser says so)."""
    if re.fullmatch(r"[\d\s,:-]+", text, re.ASCII) is None:
        return []
    return [number for item in text.split(",") for number in re.findall(r"\d+", item.partition(":")[0])]


def parse_job_id(text: str) -> tuple[int, Ranges | None]:
    """`105`, `105[3]` or `105[1-3,5]`; id 0 means all jobs and takes no indices."""
    match = _JOB_ID.fullmatch(text.strip())
    if match is None or int(match[1]) > MAX_INDEX or (match[2] is not None and int(match[1]) == 0):
        raise ArrayError(f"{' '.join(text.split())}: Illegal job ID")
    if match[2] is None:
        return int(match[1]), None
    try:
        return int(match[1]), Ranges.parse(match[2])
    except ValueError:
        raise ArrayError(f"{' '.join(text.split())}: Illegal job ID") from None
