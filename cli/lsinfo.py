"""lsinfo: show resources, host types and models."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import BASE, run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("lsinfo", "l r m M t w", "", "[resource_name ...]")
    return run_listing(context, table, caller=BASE)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
