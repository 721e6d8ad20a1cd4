"""Binding of tasks to CPUs and NUMA nodes: the shepherd binds itself around the start, and the child inherits that.

Rule: a task that cannot be bound is started unbound, with a line on its standard error; the shepherd's own binding is restored.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent.starter.protocol.part import Binding

_SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237}.get(platform.machine())
_DEFAULT, _PREFERRED, _BIND = 0, 1, 2
_MOST_NODES = 1024


@contextmanager
def bound(to: Binding | None) -> Iterator[bytes]:
    """Bind this process while the context lasts. Yields lines for the user on what failed, b"" if nothing did."""
    if to is None:
        yield b""
        return
    before = os.sched_getaffinity(0)
    warnings = _bind_cpus(to.cpus)
    if to.nodes:
        warnings += _set_policy(_BIND if to.only else _PREFERRED, to.nodes)
    try:
        yield warnings
    finally:
        if to.nodes:
            _set_policy(_DEFAULT, ())
        os.sched_setaffinity(0, before)


def _bind_cpus(cpus: Sequence[int]) -> bytes:
    try:
        if cpus:
            os.sched_setaffinity(0, cpus)
    except (OSError, ValueError, OverflowError) as e:
        why = getattr(e, "strerror", None) or str(e)
        return f"lava: cannot bind to CPUs {','.join(map(str, cpus))}: {why}\n".encode()
    return b""


def _set_policy(mode: int, nodes: Sequence[int]) -> bytes:
    """set_mempolicy(2); MPOL_PREFERRED has room for one node, so the first is used."""
    nodes = nodes[:1] if mode == _PREFERRED else nodes
    shown = ",".join(map(str, nodes))
    if _SET_MEMPOLICY is None:
        return f"lava: cannot bind memory to NUMA nodes {shown}: not known on {platform.machine()}\n".encode()
    words = [0] * (_MOST_NODES // 64)
    for node in nodes:
        if 0 <= node < _MOST_NODES:
            words[node // 64] |= 1 << node % 64
    mask = (ctypes.c_ulong * len(words))(*words)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SET_MEMPOLICY, mode, mask if nodes else None, _MOST_NODES + 1 if nodes else 0):
        why = os.strerror(ctypes.get_errno())
        return f"lava: cannot bind memory to NUMA nodes {shown}: {why}\n".encode()
    return b""
