"""lsacctmrg: merge task logs of LSF (lsf.acct of several hosts) by the time at which the tasks ended."""

from __future__ import annotations

import contextlib
import os

from cli.client import lsf_file
from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of

ENDED = 4
"""The index of the field with the time at which the task ended."""


def run(context: Context) -> int:
    """Merge the files into the last one, which is replaced only with ``-f``."""
    options, names = read_argv(context, table_of("lsacctmrg"), 2)
    *sources, target = names
    if os.path.exists(context.path(target)) and "f" not in options:
        raise Fail(f"{target}: File exists; -f replaces it")
    lines: list[tuple[int, bytes]] = []
    for name in sources:
        lines += _lines(context, name)
    lines.sort(key=lambda line: line[0])
    part = f"{context.path(target)}.{os.getpid()}"
    try:
        with open(part, "wb") as file:
            file.writelines(line for _, line in lines)
        os.replace(part, context.path(target))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise Fail(f"{target}: {error.strerror}") from None
    return 0


def _lines(context: Context, name: str) -> list[tuple[int, bytes]]:
    try:
        with open(context.path(name), "rb") as file:
            found = list(lsf_file.lines(name, file))
    except OSError as error:
        raise Fail(f"{name}: {error.strerror}") from None
    try:
        return [(int(line.split()[ENDED]), line) for line in found if line.strip()]
    except (IndexError, ValueError):
        raise Fail(f"{name}: not a task log of LSF") from None


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
