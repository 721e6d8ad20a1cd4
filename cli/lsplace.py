"""lsplace: names of hosts on which tasks would be well placed."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import BASE, run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("lsplace", "L", "n w R", "[host_name ...]"), caller=BASE)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
