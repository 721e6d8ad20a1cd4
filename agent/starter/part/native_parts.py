"""Native code for the most common parts: one process, with files, limits and a job file, and nothing around it (``native/*.c``).

It runs such a part from the order to the report of its end, and hands over to Python whatever it does not know: another kind of
part, before it has done anything for it; any other order; a task that left processes or shared memory behind.

Rule: optional. Without the library, or with LAVA_NATIVE=N in the environment, Python runs every part, with the same result.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import sys
from typing import NamedTuple

from agent.starter.protocol.codec import Json
from agent.starter.system import apart, kernel, rlimits
from agent.starter.system.stdio import append

PROGRAM_BEHIND = struct.Struct("=Q12s")
"""What ends a library with a program behind it: the program's size, and BEHIND."""
BEHIND = b"lava-program"
LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "native", "parts.so")
_NONE = 0
NO_FILE = -1


class _Text(ctypes.Structure):
    _fields_ = (("at", ctypes.c_void_p), ("size", ctypes.c_size_t))

    def copy(self) -> bytes:
        return ctypes.string_at(self.at, self.size) if self.at and self.size else b""


class TakenTask(NamedTuple):
    """The task of a part that native code has started."""

    template: bytes
    own: bytes
    pid: int
    began: float
    told: bool
    """That it runs was reported."""
    killing: bool
    """It was killed, and so is what is left of it."""
    status: int
    deadline: float
    """Of its lease, 0: it has none."""
    end: bytes
    """The encoded report of its end, which is in the end file; b"": it has not ended."""
    end_told: bool
    """That report was sent."""


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


class _Handed(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int) for name in ("state", "closed", "pid", "status", "told", "killing", "end_told")),
        *((name, ctypes.c_double) for name in ("began", "deadline")),
        *((name, _Text) for name in ("input", "unsent", "template", "own", "end")),
    )

    def read(self) -> Handed:
        task = None
        if self.state != _NONE:
            told, end = bool(self.told), self.end.copy()
            template, own = self.template.copy(), self.own.copy()
            killing, end_told = bool(self.killing), bool(self.end_told)
            task = TakenTask(template, own, self.pid, self.began, told, killing, self.status, self.deadline, end, end_told)
        return Handed(bool(self.closed), task, self.input.copy(), self.unsent.copy())


_KNOWN_TO_READ = (
    "title",
    "deadline",
    "grace",
    "env",
    "argv",
    "cwd",
    "umask",
    "nice",
    "rlimits",
    "script",
    "jobfile",
    "stdin",
    "stdout",
    "stderr",
)
_KNOWN_OF_OTHERS = ("uid", "key", "attempt", "t", "user", "cwd_else", "cgroup", "post_always", "clean_scratch")
KNOWN = frozenset((*_KNOWN_TO_READ, *_KNOWN_OF_OTHERS))
"""Fields of a part with which native code runs it (``native/spec.c``)."""
ONE_TASK = [{"rank": -1, "env": {}}]


def knows(fields: Json) -> bool:
    """Whether native code is likely to run a part with these fields: it says so itself, after it has looked at their values."""
    more = fields.keys() - KNOWN
    return not more or (more == {"tasks"} and fields["tasks"] == ONE_TASK)


_NUMBERS = struct.Struct("=7i2d")
_SIZE = struct.Struct("=Q")


def read_handed(data: bytes) -> tuple[Handed, dict[int, bytes]]:
    """What the program leaves to Python (``native/program.c``), and the templates that it has."""
    state, closed, pid, status, told, killing, end_told, began, deadline = _NUMBERS.unpack_from(data)
    at = _NUMBERS.size
    templates: dict[int, bytes] = {}

    def text() -> bytes:
        nonlocal at
        begin = at + _SIZE.size
        at = begin + _SIZE.unpack_from(data, at)[0]
        return data[begin:at]

    texts = [text() for _ in range(5)]
    while at < len(data):
        number = _SIZE.unpack_from(data, at)[0]
        at += _SIZE.size
        templates[number] = text()
    given, unsent, template, own, end = texts
    task = None
    if state != _NONE:
        task = TakenTask(template, own, pid, began, bool(told), bool(killing), status, deadline, end, bool(end_told))
    return Handed(bool(closed), task, given, unsent), templates


class _Loaded:
    """The library of this process and of those that it forks, and the program behind it."""

    library: ctypes.CDLL | None = None
    program = b""


def load(path: str = LIBRARY) -> str:
    """Load the library before the first fork: "", or why every part goes by Python."""
    if os.environ.get("LAVA_NATIVE", "").startswith("N"):
        return "LAVA_NATIVE=N"
    if sys.getfilesystemencoding() != "utf-8":
        return f"the names of files are {sys.getfilesystemencoding()}"
    try:
        with open(path, "rb") as file:
            made = file.read()
        if _sources(os.path.dirname(path)) not in made:
            return f"{path}: made from other sources than those beside it"
        library = _loaded(made)
        library.lava_shepherd.restype = ctypes.c_void_p
        library.lava_run.restype = library.lava_start_ranks.restype = None
        if not library.lava_works():
            return "vfork is done by fork here"
    except (OSError, AttributeError) as e:
        return f"{path}: {getattr(e, 'strerror', None) or e}"
    _Loaded.library = library
    size, behind = PROGRAM_BEHIND.unpack(made[-PROGRAM_BEHIND.size :])
    _Loaded.program = made[-PROGRAM_BEHIND.size - size : -PROGRAM_BEHIND.size] if behind == BEHIND else b""
    return ""


def _sources(folder: str) -> bytes:
    """What a library made from the sources in this folder has in it, b"" without sources; as in cli/native/build.py."""
    total = hashlib.sha256()
    names = sorted(name for name in os.listdir(folder) if name.endswith((".c", ".h")))
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            total.update(file.read())
    return b"sources=" + total.hexdigest().encode() if names else b""


def _loaded(made: bytes) -> ctypes.CDLL:
    """The library from a copy in memory: a file that is replaced in place, or over NFS, would end each process that has it.

    OSError where it cannot be loaded.
    """
    fd = os.memfd_create("parts")
    try:
        append(fd, made)
        return ctypes.CDLL(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def program() -> bytes:
    """The program that forks shepherds without Python, b"": there is none."""
    return _Loaded.program


def library() -> ctypes.CDLL | None:
    """The native code in this process, None: there is none."""
    return _Loaded.library


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


def forks(control: int, first: int, oom_score: int) -> tuple[NativeParts, Handed]:
    """Fork shepherds as the starter asks through ``control``; returns in a shepherd alone, when something is for Python.

    ``first``: the first of the files of a shepherd (supervisor/forker.py), which are all that is open but ``control``.
    """
    library = _Loaded.library
    assert library is not None
    # Python does not know that native code forks: it is told, and its lock stays held as around a fork of its own
    lava_forks = ctypes.PyDLL(None, handle=library._handle).lava_forks
    lava_forks.restype = ctypes.c_void_p
    handed = _Handed()
    start, size = kernel.title_area()
    ctypes.pythonapi.PyOS_BeforeFork()
    made = lava_forks(
        *map(ctypes.c_int, (control, first, oom_score, apart.has_own_keyring(), NO_FILE)),
        ctypes.c_void_p(start),
        ctypes.c_size_t(size),
        ctypes.c_longlong(rlimits.open_files()),
        ctypes.byref(handed),
    )
    ctypes.pythonapi.PyOS_AfterFork_Child()
    native = NativeParts(library, made)
    return native, handed.read()


class NativeParts:
    """The parts of one shepherd that run natively, and the templates that native code has taken."""

    def __init__(self, library: ctypes.CDLL, made: int) -> None:
        self._library = library
        self._made = ctypes.c_void_p(made)
        self._handed = _Handed()

    def run(self) -> Handed:
        """Run parts until something is for Python; to be called while there is no part, and nothing of a frame has been read."""
        self._library.lava_run(self._made, ctypes.byref(self._handed))
        return self._handed.read()

    def template(self, number: int) -> bytes:
        """The fields of a template as JSON, b"": it is not here."""
        found = _Text()
        there = self._library.lava_template(self._made, ctypes.c_longlong(number), ctypes.byref(found))
        return found.copy() if there else b""

    def drop(self, number: int) -> None:
        """Forget a template, if it is here."""
        self._library.lava_drop(self._made, ctypes.c_longlong(number))
