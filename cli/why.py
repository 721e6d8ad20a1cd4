"""lava why: why a job waits, what would start it now, and when it may start."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("why", "", "", "job_ID | job_ID[index] ..."))


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
