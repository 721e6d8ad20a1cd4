"""Job keys: one integer names a job, an array or an element, as LSF's own 64-bit job ids do.

``key = index << 32 | job``; index 0 means the job itself (or the array as a whole).
"""

from __future__ import annotations

_JOB = 0xFFFFFFFF


def key_of(job: int, index: int = 0) -> int:
    """The key of element ``index`` of ``job`` (0: the job itself)."""
    return index << 32 | job


def job_of(key: int) -> int:
    """The job id in a key."""
    return key & _JOB


def index_of(key: int) -> int:
    """The array index in a key, 0 for a job that is no element."""
    return key >> 32


def show(key: int) -> str:
    """``123`` or ``123[4]``."""
    index = key >> 32
    return f"{key & _JOB}[{index}]" if index else str(key)
