"""bgdel: remove job groups that have no jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.client.options import read_argv, table_of
from cli.control.control import change


def run(context: Context) -> int:
    """Remove one group; ``0``: all empty ones; ``-c``: also the empty ones below it."""
    options, words = read_argv(context, table_of("bgdel"), 1, 1)
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
