"""bgadd: add a job group."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.client.options import read_argv, table_of
from cli.control.control import change
from cli.control.values import job_group_limit


def run(context: Context) -> int:
    """Add the group, and its parents where they are missing."""
    table = table_of("bgadd")
    options, words = read_argv(context, table, 1, 1)
    frame = {"ask": "addgroup", "group": words[0], "limit": job_group_limit(options, table)}
    change(context, "bgadd", frame)
    context.out(f"Group {words[0]} added successfully.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
