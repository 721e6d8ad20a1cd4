"""Job names and job ids as users write them: ``-J 'name[1-3]%2'``, the patterns of filters, and ids with index lists.

Rule: text comes in, a name or an id with its `Ranges` comes out; the errors' texts are LSF's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from lavad.core.lang.ids import index_of, key_of
from lavad.core.lang.ranges import MAX_INDEX, MAX_MIXED_HULL, Ranges, mixed_hull

MAX_NAME = 4094
MAX_KEYS = 1_000_000
"""Jobs and elements that the ids of one request may name one by one."""
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
    if match is None or (match[3] is not None and not 1 <= int(match[3]) <= MAX_INDEX):
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


def parse_job_ids(texts: Iterable[str]) -> Iterator[tuple[str, int, Ranges | None]]:
    """(text, job, indices) of each id of one request. Raises ArrayError, also where all of them take too long to read."""
    left = MAX_MIXED_HULL
    for text in texts:
        if ":" in text and _JOB_ID.fullmatch(text.strip()) is not None:
            try:
                left -= mixed_hull(text.strip().partition("[")[2].rstrip("]"))
            except ValueError:
                raise ArrayError(f"{' '.join(text.split())}: Illegal job ID") from None
            if left < 0:
                raise ArrayError(f"{text[:40]}: The index lists of these job IDs are too large")
        yield (text, *parse_job_id(text))


def keys_named(texts: Iterable[str]) -> list[int]:
    """The keys of all jobs and elements that ids name, each element by itself; id 0 (all jobs) names none.

    Raises ArrayError for an id that is none, and for more than ``MAX_KEYS``, before they are listed.
    """
    keys: list[int] = []
    for text, job, indices in parse_job_ids(texts):
        if len(keys) + (1 if indices is None else len(indices)) > MAX_KEYS:
            raise ArrayError(f"{text[:40]}: More than {MAX_KEYS} jobs and elements")
        if job:
            keys += [job] if indices is None else [key_of(job, index) for index in indices]
    return keys


class Wildcard:
    """A text in which ``*`` stands for anything. Matched in time linear in the text: `re` would search for ever on many stars."""

    __slots__ = ("_first", "_last", "_middle", "_plain")

    def __init__(self, text: str) -> None:
        self._first, *rest = text.split("*")
        self._plain = not rest
        self._last = rest.pop() if rest else ""
        self._middle = [piece for piece in rest if piece]

    def fits(self, text: str) -> bool:
        """Whether the whole text is meant."""
        if self._plain:
            return text == self._first
        at, end = len(self._first), len(text) - len(self._last)
        if end < at or not text.startswith(self._first) or not text.endswith(self._last):
            return False
        for piece in self._middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True


class NamePattern:
    """A name to look for. ``indices`` are those that it gives, None: none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._whole = Wildcard(text)
        base, bracket, _ = text.partition("[")
        self.indices: Ranges | None = None
        if bracket and base and text.endswith("]"):
            try:
                self.indices = parse_job_id(f"1{text[len(base) :]}")[1]
            except ArrayError:
                pass
        self._base = Wildcard(base if self.indices is not None else text)

    def fits_array(self, name: str) -> bool:
        """Whether an array of this name (without indices) is meant, or elements of it."""
        return self._base.fits(name)

    def fits(self, key: int, name: str) -> bool:
        """Whether a job or element is meant."""
        if self._whole.fits(name):
            return True
        index = index_of(key)
        if not index or (self.indices is not None and index not in self.indices):
            return False
        return self.fits_array(name[: name.rfind("[")])


@lru_cache(maxsize=64)
def pattern(text: str) -> NamePattern:
    """The pattern of a text."""
    return NamePattern(text)
