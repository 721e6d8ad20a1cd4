"""REQUEUE_EXIT_VALUES: which exit codes let a job wait again. ``1 2 EXCLUDE(3)``, ``all ~0``; LSF's syntax."""

from __future__ import annotations

import re
from functools import lru_cache


@lru_cache(maxsize=256)
def _codes(text: str) -> tuple[frozenset[int], bool, frozenset[int]]:
    plain = re.sub(r"EXCLUDE\(([^)]*)\)", r"\1", text)
    words = plain.replace(",", " ").split()
    codes = frozenset(int(word) for word in words if word.isdigit())
    out = frozenset(int(word[1:]) for word in words if word.startswith("~") and word[1:].isdigit())
    return codes, "all" in words, out


def wants_requeue(text: str, exit_code: int) -> bool:
    """Whether a job that ended with ``exit_code`` (negative: a signal) is to be requeued."""
    if not text:
        return False
    codes, every, out = _codes(text)
    code = exit_code if exit_code >= 0 else 128 - exit_code
    return (code in codes or (every and code != 0)) and code not in out
