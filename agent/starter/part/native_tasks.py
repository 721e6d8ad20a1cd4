"""Tasks of a part that differ by their variables and files alone, started at once by native code (``native/ranks.c``).

Rule: optional, as all native code. What it does not start is started by Python, which says why where that fails too.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import NamedTuple

from agent.starter.part import native_parts
from agent.starter.system.binding import Masks
from agent.starter.system.rlimits import Limits

_THREADS = 8
"""More than there may be processors: each waits until its program has begun, on a busy host for its turn among all processes."""
_MOST_LIMITS = 16
"""As native.h."""


class Asked(NamedTuple):
    """What a task has of its own."""

    variables: Sequence[bytes]
    """Each ``NAME=value``; they go over those of the part."""
    fds: tuple[int, int, int]
    """Its files 0, 1 and 2."""
    keep: int = -1
    """A further file that it inherits, -1: none."""
    binding: Masks | None = None


class _Rank(ctypes.Structure):
    _fields_ = (
        ("own", ctypes.c_char_p),
        *((name, ctypes.c_int) for name in ("stdin", "stdout", "stderr", "kept")),
        *((name, ctypes.c_char_p) for name in ("cpus", "nodes")),
        *((name, ctypes.c_int) for name in ("call", "mode", "no_cpus", "no_nodes", "pid")),
    )


class _Limit(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("soft", ctypes.c_uint64), ("hard", ctypes.c_uint64))


def start(
    argv: Sequence[str], programs: Sequence[bytes], env: Sequence[bytes], limits: Limits, nice: int, asked: Sequence[Asked]
) -> list[tuple[int, bytes]]:
    """Start ``argv`` for each, as ``tasks.start`` does: (its pid, 0 where it was not started; lines for its user).

    It starts none where there is no native code, or one word or variable is for Python.
    """
    none = [(0, b"")] * len(asked)
    library = native_parts.library()
    if library is None or len(limits.wanted) > _MOST_LIMITS:
        return none
    args = [os.fsencode(one) for one in argv]
    ranks = (_Rank * len(asked))()
    words = [*args, *env]
    for rank, (variables, fds, keep, binding) in zip(ranks, asked, strict=True):
        words += variables
        rank.own = b"\0".join(variables) + b"\0"
        rank.stdin, rank.stdout, rank.stderr = fds
        rank.kept = keep
        if binding:
            rank.cpus, rank.nodes, rank.call, rank.mode = binding.cpus, binding.nodes, binding.call, binding.mode
    if any(b"\0" in one for one in words):
        return none
    library.lava_start_ranks(
        _strings(env),
        _strings(args),
        _strings(programs),
        ctypes.c_int(nice),
        (_Limit * len(limits.wanted))(*(_Limit(*one) for one in limits.wanted)),
        ctypes.c_int(len(limits.wanted)),
        ranks,
        ctypes.c_int(len(asked)),
        ctypes.c_int(_THREADS),
    )
    return [
        (rank.pid, one.binding.said(rank.no_cpus, rank.no_nodes) if one.binding and rank.pid else b"")
        for rank, one in zip(ranks, asked, strict=True)
    ]


def _strings(values: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(values) + 1))(*values, None)
