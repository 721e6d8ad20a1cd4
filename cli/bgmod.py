"""bgmod: change the limit of a job group."""

from __future__ import annotations

from cli.bgadd import change, read_limit
from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.options.options import Table, read_letters, show_help


def run(context: Context) -> int:
    """Set the limit (-L), or take it away (-Ln)."""
    table = Table("bgmod", "Ln", "L", "job_group_name")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1 or ("L" in options) == ("Ln" in options):
        raise Fail(table.usage())
    change(context, "bgmod", {"ask": "changegroup", "group": words[0], "limit": read_limit(options, table)})
    context.out(f"Group {words[0]} is modified successfully.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
