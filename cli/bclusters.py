"""bclusters: show what goes between clusters."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bclusters", "app w", "", "[cluster_name ...]")
    return run_listing(context, table)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
