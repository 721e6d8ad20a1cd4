"""bpeek: show the output of a job so far."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.selection import selected


def run(context: Context) -> int:
    """Print the output so far; with ``-f`` go on until the job ends."""
    table = table_of("bpeek")
    options, words = read_argv(context, table)
    select = selected(options, words, table)
    ids = select.pop("ids", [])
    if len(ids) > 1:
        raise Fail(table.usage())
    frame = {"ask": "peek", "job": ids[0] if ids else "", "select": select, "follow": "f" in options}
    return Client(context, read_conf(context)).stream(frame)


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
