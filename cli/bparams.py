"""bparams: show the parameters of the batch system."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bparams", "a l w", "", "")
    return run_listing(context, table, help_status=0)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
