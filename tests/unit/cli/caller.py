"""Runs a command in this process as a caller would: words, environment, stdin; what it printed comes back."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cli import listing
from cli.client.context import Context, finish
from proto.commands import COMMANDS


class Ran(NamedTuple):
    status: int
    out: str
    err: str


class Caller:
    """A user in a folder, with an lsf.conf that points to the master of a test."""

    def __init__(self, folder: Path, conf: str = "") -> None:
        self.folder = folder
        self.socket = folder / "lavad.sock"
        (folder / "lsf.conf").write_text(f"LAVA_RUNDIR={folder}\n{conf}")
        self.environ = {"LSF_ENVDIR": str(folder), "HOME": "/home/alice", "PATH": "/usr/bin:/bin", "SHELL": "/bin/bash"}

    def run(self, command: str, *words: str, stdin: bytes = b"", **environ: str) -> Ran:
        """Run one command with a regular file as its stdin."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            context = Context(
                list(words),
                str(self.folder),
                {**self.environ, **environ},
                given.fileno(),
                out.fileno(),
                err.fileno(),
            )
            status = finish(_run_of(command), context)
            return Ran(status, _text(out.fileno()), _text(err.fileno()))

    def run_joined(self, command: str, *words: str) -> Ran:
        """Run one command with stdout and stderr on one file: their order shows."""
        with tempfile.TemporaryFile() as both:
            context = Context(list(words), str(self.folder), self.environ, 0, both.fileno(), both.fileno())
            status = finish(_run_of(command), context)
            return Ran(status, _text(both.fileno()), "")


def _run_of(command: str) -> Callable[[Context], int]:
    row = COMMANDS[command]
    if row.module == "cli.listing":
        return lambda context: listing.show(context, command)
    run: Callable[[Context], int] = importlib.import_module(row.module).run
    return run


def _text(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 1 << 20).decode(errors="surrogateescape")
