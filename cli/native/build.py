"""The executable of the native commands and the library of the starter, where there is a compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable

SOURCES = ("front.c", "identity.c", "servers.c")
OPTIONS = ("-O2", "-s", "-Wall", "-Wextra")
WAYS = (("-static",), ())
"""A static executable starts in half the time, but is large, and not every system can make one."""

LIBRARY = os.path.join("agent", "starter", "part", "native", "parts.so")
"""Below the folder that holds lava's packages, beside its sources."""


def built(folder: str = os.path.dirname(os.path.abspath(__file__)), ways: tuple[tuple[str, ...], ...] = WAYS) -> bytes | None:
    """The executable; None where no compiler makes one. ``CC`` names the compiler."""
    for way in ways:
        if found := _compiled([os.path.join(folder, name) for name in SOURCES], way, _starts):
            return found
    return None


def built_library(root: str) -> bytes | None:
    """The library of the starter (agent/starter/part/native_parts.py) in a folder with lava's packages; None as for ``built``.

    Behind it, which does not matter to those that load it, lies the same as a program, where one can be made.
    """
    folder = os.path.dirname(os.path.join(root, LIBRARY))
    names = sorted(name for name in os.listdir(folder) if name.endswith(".c")) if os.path.isdir(folder) else []
    if not names:
        return None
    paths, sources = [os.path.join(folder, name) for name in names], f'-DSOURCES="{_sources(folder)}"'
    library = _compiled(paths, ("-fPIC", "-shared", sources), _loads)
    programs = (_compiled(paths, (*way, sources), _says_no) for way in WAYS)
    if library is None or (program := next(filter(None, programs), None)) is None:
        return library
    return library + program + struct.pack("=Q12s", len(program), b"lava-program")


def is_current(root: str) -> bool:
    """Whether the library is there, and made from the sources that lie beside it."""
    library = os.path.join(root, LIBRARY)
    try:
        with open(library, "rb") as file:
            return b"sources=" + _sources(os.path.dirname(library)).encode() in file.read()
    except OSError:
        return False


def _sources(folder: str) -> str:
    """The checksum of the library's sources; as in agent/starter/part/native_parts.py, which is not imported here."""
    total = hashlib.sha256()
    for name in sorted(name for name in os.listdir(folder) if name.endswith((".c", ".h"))):
        with open(os.path.join(folder, name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def _compiled(sources: list[str], way: tuple[str, ...], works: Callable[[str], bool]) -> bytes | None:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or not all(map(os.path.exists, sources)):
        return None
    with tempfile.TemporaryDirectory() as made:
        program = os.path.join(made, "made")
        try:
            done = subprocess.run([*compiler.split(), *OPTIONS, *way, "-o", program, *sources], capture_output=True, check=False)
        except OSError:
            return None
        if done.returncode != 0 or not works(program):
            return None
        with open(program, "rb") as file:
            return file.read()


def _starts(program: str) -> bool:
    """Whether it runs on this machine: alone in a folder it finds no plain command."""
    try:
        return subprocess.run([program], env={"LAVA_NATIVE": "N"}, capture_output=True, check=False).returncode == 127
    except OSError:
        return False


def _says_no(program: str) -> bool:
    """Whether it runs on this machine: without words it is for nothing."""
    try:
        return subprocess.run([program], capture_output=True, check=False).returncode == 70
    except OSError:
        return False


def _loads(library: str) -> bool:
    """Whether it can be loaded on this machine, tried in another process."""
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    return subprocess.run([sys.executable, "-ISc", program, library], capture_output=True, check=False).returncode == 0
