"""The executable of the native commands, where there is a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

SOURCES = ("front.c", "identity.c", "servers.c")
OPTIONS = ("-O2", "-s", "-Wall", "-Wextra")
WAYS = (("-static",), ())
"""A static executable starts in half the time, but is large, and not every system can make one."""


def built(folder: str = os.path.dirname(os.path.abspath(__file__)), ways: tuple[tuple[str, ...], ...] = WAYS) -> bytes | None:
    """The executable; None where no compiler makes one. ``CC`` names the compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or not all(os.path.exists(os.path.join(folder, name)) for name in SOURCES):
        return None
    with tempfile.TemporaryDirectory() as made:
        program = os.path.join(made, "front")
        for way in ways:
            words = [*compiler.split(), *OPTIONS, *way, "-o", program, *(os.path.join(folder, name) for name in SOURCES)]
            try:
                done = subprocess.run(words, capture_output=True, check=False)
            except OSError:
                return None
            if done.returncode == 0 and _starts(program):
                with open(program, "rb") as file:
                    return file.read()
    return None


def _starts(program: str) -> bool:
    """Whether it runs on this machine: alone in a folder it finds no plain command."""
    try:
        return subprocess.run([program], env={"LAVA_NATIVE": "N"}, capture_output=True, check=False).returncode == 127
    except OSError:
        return False
