"""busers: show the limits and the use of users and groups."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("busers", "w alloc noheader json a", "o", "[user_name | user_group | all] ...")
    return run_listing(context, table, form="LSB_BUSERS_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
