"""Numbered files of the past: lsb.acct.1 is the newest, and so on, as LSF names them."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

DAY = 86_400.0
_STAMP = re.compile(r'"[A-Z_0-9]+" "[^"]*" (\d+)')


def rotate(path: Path, most: int) -> None:
    """Move a file away as number 1, the older ones one further. ``most``: how many are kept; 0: all."""
    last = next(number for number in count(1) if not _of(path, number).exists())
    for number in range(last, 1, -1):
        _of(path, number - 1).replace(_of(path, number))
    path.replace(_of(path, 1))
    path.touch()
    for number in count(most + 1):
        if not most or not _of(path, number).exists():
            return
        _of(path, number).unlink()


def is_due(path: Path, now: float, most: int, days: int) -> bool:
    """Whether a file is larger than ``most`` bytes, or begins with a line older than this; 0: neither counts."""
    size = path.stat().st_size
    if not size:
        return False
    if most and size > most:
        return True
    return bool(days) and now - _began(path) > days * DAY


def _began(path: Path) -> float:
    """When the first line was written; the time of the file where it does not say."""
    with path.open(encoding="utf-8", errors="replace") as file:
        found = _STAMP.match(file.read(200))
    return float(found[1]) if found is not None else path.stat().st_mtime


def _of(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")
