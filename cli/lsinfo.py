"""lsinfo: show resources, host types and models."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import BASE, run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("lsinfo", "l r m M t w", "", "[resource_name ...]")
    return run_listing(context, table, caller=BASE)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
