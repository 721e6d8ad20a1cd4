"""bparams: show the parameters of the batch system."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bparams", "a l w", "", "")
    return run_listing(context, table, help_status=0)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
