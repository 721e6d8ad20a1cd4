"""The executable of the native commands and the library of the starter, where there is a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
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
    """The library of the starter (agent/starter/part/native_parts.py) in a folder with lava's packages; None as for ``built``."""
    folder = os.path.dirname(os.path.join(root, LIBRARY))
    names = sorted(name for name in os.listdir(folder) if name.endswith(".c")) if os.path.isdir(folder) else []
    return _compiled([os.path.join(folder, name) for name in names], ("-fPIC", "-shared")) if names else None


def is_current(root: str) -> bool:
    """Whether the library is there, and newer than what it is made from."""
    library = os.path.join(root, LIBRARY)
    folder = os.path.dirname(library)
    try:
        made = os.stat(library).st_mtime
        return all(
            os.stat(os.path.join(folder, name)).st_mtime < made for name in os.listdir(folder) if name.endswith((".c", ".h"))
        )
    except OSError:
        return False


def _compiled(sources: list[str], way: tuple[str, ...], works: Callable[[str], bool] = os.path.exists) -> bytes | None:
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
