"""bgadd: add a job group."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_letters, show_help, table_of
from cli.control.control import change
from cli.control.values import job_group_limit


def run(context: Context) -> int:
    """Add the group, and its parents where they are missing."""
    table = table_of("bgadd")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1:
        raise Fail(table.usage())
    frame = {"ask": "addgroup", "group": words[0], "limit": job_group_limit(options, table)}
    change(context, "bgadd", frame)
    context.out(f"Group {words[0]} added successfully.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
