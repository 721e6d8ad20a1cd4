"""lava why: why a job waits, what would start it now, and when it may start."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("why", "", "", "job_ID | job_ID[index] ..."))


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
