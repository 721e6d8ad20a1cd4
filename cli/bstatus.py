"""bstatus: show the external status of a job, or with -d set it."""

from __future__ import annotations

from cli import listing
from cli.client.context import Context, start
from cli.client.options import read_letters, show_help, table_of
from cli.control.messages import one_job, post


def run(context: Context) -> int:
    table = table_of("bstatus")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if "d" not in options:
        return listing.show(context, "bstatus")
    post(context, one_job(options, words, table_of("bpost")), str(options["d"]))
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
