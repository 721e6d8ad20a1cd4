"""bread: show the messages that were posted to a job; ``-a FILE`` keeps the data that is attached to one."""

from __future__ import annotations

import os

from cli.client.client import Client, read_conf
from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.options.options import Table, read_letters, show_help

MODE = 0o666


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bread", "w", "i a N", "job_ID | job_ID[index]", refused="N")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    name = options.pop("a", "")
    options.pop("w", None)  # a message is never cut
    client = Client(context, read_conf(context))
    frame = {"ask": "query", "command": table.command, "options": options, "words": words}
    if isinstance(name, str) and name:
        options.setdefault("i", "0")
        data = client.text_of({**frame, "options": {**options, "a": True}})
        _keep(context, name, data)
    return client.query(frame)


def _keep(context: Context, name: str, data: str) -> None:
    try:
        descriptor = os.open(context.path(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, MODE)
        with open(descriptor, "wb") as file:
            file.write(data.encode("utf-8"))
    except OSError as error:
        raise Fail(f"{name}: {error.strerror}") from None


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
