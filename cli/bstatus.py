"""bstatus: show the external status of a job, or with -d set it."""

from __future__ import annotations

from cli import bpost
from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table, read_letters, show_help


def run(context: Context) -> int:
    """Show or post."""
    table = Table("bstatus", "l", "d J", "job_ID | job_ID[index]")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if "d" not in options:
        return run_listing(context, table)
    context.argv = ["-i", "0", "-d", str(options["d"]), *words]
    return bpost.run(context)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
