"""bgmod: change the limit of a job group."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.control import change
from cli.control.values import job_group_limit


def run(context: Context) -> int:
    """Set the limit (``-L``), or remove it (``-Ln``)."""
    table = table_of("bgmod")
    options, words = read_argv(context, table, 1, 1)
    if ("L" in options) == ("Ln" in options):
        raise Fail(table.usage())
    change(context, "bgmod", {"ask": "changegroup", "group": words[0], "limit": job_group_limit(options, table)})
    context.out(f"Group {words[0]} is modified successfully.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
