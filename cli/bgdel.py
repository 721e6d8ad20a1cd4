"""bgdel: remove job groups that have no jobs."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_letters, show_help, table_of
from cli.control.control import change


def run(context: Context) -> int:
    """Remove one group; ``0``: all empty ones; ``-c``: also the empty ones below it."""
    table = table_of("bgdel")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1:
        raise Fail(table.usage())
    frame: dict[str, str | bool] = {"ask": "dropgroup", "group": words[0], "user": str(options.get("u", ""))}
    if "c" in options:
        frame["below"] = True
    ok = change(context, "bgdel", frame)
    groups = ok.get("groups")
    for name in groups if isinstance(groups, list) else []:
        context.out(f"Group {name} removed successfully.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)
