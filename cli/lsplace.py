"""lsplace: names of hosts on which tasks would be well placed."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import BASE, run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("lsplace", "L", "n w R", "[host_name ...]"), caller=BASE)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
