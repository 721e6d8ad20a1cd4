"""lsload: show the load of hosts."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import BASE, run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("lsload", "l w s N E a gpu gpuload noheader json cname", "R n I o", "[host_name ...]", refused="cname")
    return run_listing(context, table, help_status=0, caller=BASE, form="LSF_LSLOAD_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
