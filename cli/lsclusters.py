"""lsclusters: show the clusters."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import BASE, run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("lsclusters", "l w", "", "[cluster_name ...]")
    return run_listing(context, table, help_status=0, caller=BASE)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
