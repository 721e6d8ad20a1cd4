"""bqueues: show the queues."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bqueues", "w l r noheader json alloc", "m u o", "[queue_name ...]")
    return run_listing(context, table, form="LSB_BQUEUES_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
