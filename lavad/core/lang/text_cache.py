"""A cache of what texts of users are read as, bounded also where the texts are long."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
SHORT = 128
"""Characters. What is made of a text takes about a hundred times its length."""
SHORT_KEPT, LONG_KEPT = 2048, 32


def text_cache(read: Callable[P, T]) -> Callable[P, T]:
    """Keep results of a pure function: those of short texts as far as they repeat, of long ones the newest few."""
    short = lru_cache(maxsize=SHORT_KEPT)(read)
    long = lru_cache(maxsize=LONG_KEPT)(read)

    @wraps(read)
    def find(*args: P.args, **kwargs: P.kwargs) -> T:
        length = sum(len(text) for text in args if isinstance(text, str))
        return (short if length <= SHORT else long)(*args, **kwargs)  # type: ignore[arg-type]

    return find
