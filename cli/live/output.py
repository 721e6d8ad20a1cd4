"""The end of a job's output, as bpeek would show it, for commands that look at it again and again."""

from __future__ import annotations

import os
import tempfile

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail

LARGEST = 64 * 1024


def end_of_output(context: Context, job: str) -> str:
    """The last LARGEST bytes of what it wrote; "" where there is nothing yet, or the caller may not see it."""
    with tempfile.TemporaryFile() as file, open(os.devnull, "wb") as nothing:
        quiet = Context([job], context.cwd, context.environ, stdout=file.fileno(), stderr=nothing.fileno())
        try:
            Client(quiet, read_conf(quiet)).stream({"ask": "peek", "job": job, "last": LARGEST})
        except Fail:
            return ""
        file.seek(0)
        return file.read().decode("utf-8", "replace")
