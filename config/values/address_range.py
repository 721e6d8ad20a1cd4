"""LSF_HOST_ADDR_RANGE: which addresses hosts may join from.

Rule: IPv4 patterns of four numbers; ``*`` is any, ``a-b``, ``a-*`` and ``*-b`` a range; numbers left out at the end are any.
"""

from __future__ import annotations

import re

_PART = re.compile(r"(\*|\d{1,3})(?:-(\*|\d{1,3}))?", re.ASCII)

Pattern = list[tuple[int, int]]


def parse(word: str) -> Pattern:
    """The four ranges of a pattern; raises ValueError."""
    found = []
    for part in word.split("."):
        match = _PART.fullmatch(part)
        low, high = match.groups() if match else ("256", None)
        least = 0 if low == "*" else int(low)
        most = 255 if "*" in (low if high is None else high,) else int(high if high is not None else low)
        if least > most or most > 255:
            raise ValueError(f"'{word[:50]}' is not a range of IPv4 addresses such as 10.1.*.1-20")
        found.append((least, most))
    if len(found) > 4:
        raise ValueError(f"'{word[:50]}' has more than four numbers")
    return found + [(0, 255)] * (4 - len(found))


def is_within(address: str, words: tuple[str, ...]) -> bool:
    """Whether an address is in one of the ranges."""
    numbers = address.removeprefix("::ffff:").split(".")
    if len(numbers) != 4 or not all(number.isascii() and number.isdigit() for number in numbers):
        return False
    return any(all(low <= int(one) <= high for one, (low, high) in zip(numbers, parse(word), strict=True)) for word in words)
