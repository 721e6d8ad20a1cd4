"""Programs that print by Python's own means: their standard files, and what becomes of output for which there is no room."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

BROKEN_PIPE = 141
"""As a shell tells of a program that SIGPIPE ended."""
NO_ROOM = 255


def with_standard_files(run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run what prints by Python's own means; its exit status. A standard file that is closed takes or gives nothing, and output
    for which there is no room is said to have none, in one line.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:  # the next file that is opened would get its number
            os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            os.set_inheritable(fd, True)
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", closefd=False))
    try:
        try:
            status = run(words)
        except SystemExit as ended:  # argparse, which has said why
            status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        # what Python still has of it would fail once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return BROKEN_PIPE
        sys.stderr.write(f"output: {error.strerror}\n")
        return NO_ROOM
    return status
