"""bstatus: show the external status of a job, or with -d set it."""

from __future__ import annotations

from cli import listing
from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.messages import post
from cli.control.selection import check_id


def run(context: Context) -> int:
    options, words = read_argv(context, table_of("bstatus"))
    if "d" not in options:
        return listing.show(context, "bstatus")
    if len(words) != 1:
        raise Fail(table_of("bpost").usage())
    post(context, check_id(words[0]), str(options["d"]))
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
