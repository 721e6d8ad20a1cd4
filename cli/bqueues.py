"""bqueues: show the queues."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bqueues", "w l r noheader json alloc", "m u o", "[queue_name ...]")
    return run_listing(context, table, form="LSB_BQUEUES_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
