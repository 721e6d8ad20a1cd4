"""Binding of tasks to CPUs and NUMA nodes: the shepherd binds itself around the start, and the child inherits that.

Native code has the child bind itself, by ``masks``.

Rule: a task that cannot be bound is started unbound, with a line on its standard error; the shepherd's own binding is restored.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

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
        return _no_cpus(cpus, why)
    return b""


def _no_cpus(cpus: Sequence[int], why: str) -> bytes:
    return f"lava: cannot bind to CPUs {','.join(map(str, cpus))}: {why}\n".encode()


def _no_nodes(nodes: Sequence[int], why: str) -> bytes:
    return f"lava: cannot bind memory to NUMA nodes {','.join(map(str, nodes))}: {why}\n".encode()


def _set_policy(mode: int, nodes: Sequence[int]) -> bytes:
    """set_mempolicy(2); MPOL_PREFERRED has room for one node, so the first is used."""
    nodes = nodes[:1] if mode == _PREFERRED else nodes
    if _SET_MEMPOLICY is None:
        return _no_nodes(nodes, f"not known on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(_SET_MEMPOLICY, mode, _mask(nodes) if nodes else None, _MOST_NODES + 1 if nodes else 0):
        return _no_nodes(nodes, os.strerror(ctypes.get_errno()))
    return b""


def _mask(numbers: Sequence[int]) -> bytes:
    """A bit for each; those that have none are left out."""
    return sum(1 << one for one in {*numbers} if 0 <= one < _MOST_NODES).to_bytes(_MOST_NODES // 8, sys.byteorder)


class Masks(NamedTuple):
    """A binding as native code has it."""

    cpus: bytes | None
    nodes: bytes | None
    call: int
    """The number of set_mempolicy."""
    mode: int
    to: Binding

    def said(self, no_cpus: int, no_nodes: int) -> bytes:
        """Lines for the user, as ``bound``, on what failed with these numbers of errors (0: nothing)."""
        nodes = self.to.nodes if self.to.only else self.to.nodes[:1]
        cpus = _no_cpus(self.to.cpus, os.strerror(no_cpus)) if no_cpus else b""
        return cpus + (_no_nodes(nodes, os.strerror(no_nodes)) if no_nodes else b"")


def masks(to: Binding) -> Masks | None:
    """A binding for native code, None where it is for ``bound``."""
    if any(not 0 <= one < _MOST_NODES for one in (*to.cpus, *to.nodes)) or (to.nodes and _SET_MEMPOLICY is None):
        return None
    nodes = to.nodes if to.only else to.nodes[:1]
    mode = _BIND if to.only else _PREFERRED
    return Masks(_mask(to.cpus) if to.cpus else None, _mask(nodes) if nodes else None, _SET_MEMPOLICY or 0, mode, to)
