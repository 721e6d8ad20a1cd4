"""bstatus: show the external status of a job, or with -d set it."""

from __future__ import annotations

from cli import listing
from cli.client.context import Context, start
from cli.client.options import read_argv, table_of
from cli.control.messages import one_job, post


def run(context: Context) -> int:
    options, words = read_argv(context, table_of("bstatus"))
    if "d" not in options:
        return listing.show(context, "bstatus")
    post(context, one_job(options, words, table_of("bpost")), str(options["d"]))
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
