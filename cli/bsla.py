"""bsla: show service classes."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bsla", "N l", "", "[service_class ...]")
    return run_listing(context, table)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
