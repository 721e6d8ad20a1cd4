"""Job names as ``-J`` asks for them: ``*`` stands for anything, ``name[1-3,5]`` for elements, a name alone for all of them."""

from __future__ import annotations

import re
from functools import lru_cache

from lavad.core.lang.arrays import ArrayError, parse_job_id
from lavad.core.lang.ids import index_of
from lavad.core.lang.ranges import Ranges


class NamePattern:
    """A name to look for. ``indices`` are those that it gives, None: none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._whole = _exact(text)
        base, bracket, _ = text.partition("[")
        self.indices: Ranges | None = None
        if bracket and base and text.endswith("]"):
            try:
                self.indices = parse_job_id(f"1{text[len(base) :]}")[1]
            except ArrayError:
                pass
        self._base = _exact(base if self.indices is not None else text)

    def fits_array(self, name: str) -> bool:
        """Whether an array of this name (without indices) is meant, or elements of it."""
        return self._base.fullmatch(name) is not None

    def fits(self, key: int, name: str) -> bool:
        """Whether a job or element is meant."""
        if self._whole.fullmatch(name):
            return True
        index = index_of(key)
        if not index or (self.indices is not None and index not in self.indices):
            return False
        return self.fits_array(name[: name.rfind("[")])


def _exact(text: str) -> re.Pattern[str]:
    return re.compile(re.escape(text).replace(r"\*", ".*"), re.DOTALL)


@lru_cache(maxsize=64)
def pattern(text: str) -> NamePattern:
    """The pattern of a text."""
    return NamePattern(text)
