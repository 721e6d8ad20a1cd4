"""Native code for the most common parts: one process, with files, limits and a job file, and nothing around it (``native/*.c``).

It runs such a part from the order to the report of its end, and hands over to Python whatever it does not know: another kind of
part, before it has done anything for it; any other order; a task that failed or left processes behind.

Rule: optional. Where the library was not made, or LAVA_NATIVE=N is in the environment, every part runs by Python, and the same.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import NamedTuple

from agent.starter.system import apart, kernel, rlimits

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "parts.so")
VERSION = 1
"""Of what the two have in common, as in native/native.h."""
_NONE = 0


class _Text(ctypes.Structure):
    _fields_ = (("at", ctypes.c_void_p), ("size", ctypes.c_size_t))

    def copy(self) -> bytes:
        return ctypes.string_at(self.at, self.size) if self.at and self.size else b""


class _Handed(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("state", "closed", "pid", "status", "told")),
        ("began", ctypes.c_double),
        *((name, _Text) for name in ("input", "unsent", "template", "own", "end")),
    )


class TakenTask(NamedTuple):
    """The task of a part that native code has started."""

    template: bytes
    own: bytes
    pid: int
    began: float
    told: bool
    """That it runs was reported."""
    status: int
    end: bytes
    """The encoded report of its end, which is in the end file; b"": it has not ended."""


class Handed(NamedTuple):
    """What native code leaves to Python."""

    closed: bool
    """The starter is gone."""
    task: TakenTask | None
    """Of the part that is not gone."""
    input: bytes
    """Frames from the starter, the last one perhaps not whole."""
    unsent: bytes
    """What is still to be sent to the starter."""


class _Loaded:
    """The library of this process and of those that it forks."""

    library: ctypes.CDLL | None = None


def load(path: str = LIBRARY) -> bool:
    """Load the library before the first fork; False: there is none, or it is not wanted."""
    if os.environ.get("LAVA_NATIVE", "").startswith("N") or sys.getfilesystemencoding() != "utf-8":
        return False
    try:
        library = ctypes.CDLL(path)
        library.lava_shepherd.restype = ctypes.c_void_p
        library.lava_run.restype = None
        current = library.lava_version() == VERSION
    except (OSError, AttributeError):
        return False
    if not current:  # it was made before the sources were changed
        return False
    _Loaded.library = library
    return True


def begin(starter: int, wake: int, end_file: int) -> NativeParts | None:
    """Native code for this shepherd, by its files; None: there is none."""
    library = _Loaded.library
    if library is None:
        return None
    start, size = kernel.title_area()
    made = library.lava_shepherd(
        *map(ctypes.c_int, (starter, wake, end_file, apart.has_own_keyring())),
        ctypes.c_void_p(start),
        ctypes.c_size_t(size),
        ctypes.c_longlong(rlimits.open_files()),
    )
    return NativeParts(library, made) if made else None


class NativeParts:
    """The parts of one shepherd that run natively, and the templates that native code has taken."""

    def __init__(self, library: ctypes.CDLL, made: int) -> None:
        self._library = library
        self._made = ctypes.c_void_p(made)
        self._handed = _Handed()

    def run(self) -> Handed:
        """Run parts until something is for Python; to be called while there is no part, and nothing of a frame has been read."""
        handed = self._handed
        self._library.lava_run(self._made, ctypes.byref(handed))
        task = None
        if handed.state != _NONE:
            told, end = bool(handed.told), handed.end.copy()
            template, own = handed.template.copy(), handed.own.copy()
            task = TakenTask(template, own, handed.pid, handed.began, told, handed.status, end)
        return Handed(bool(handed.closed), task, handed.input.copy(), handed.unsent.copy())

    def template(self, number: int) -> bytes:
        """The fields of a template as JSON, b"": it is not here."""
        found = _Text()
        there = self._library.lava_template(self._made, ctypes.c_longlong(number), ctypes.byref(found))
        return found.copy() if there else b""

    def drop(self, number: int) -> None:
        """Forget a template, if it is here."""
        self._library.lava_drop(self._made, ctypes.c_longlong(number))
