"""bresources: show resource limits and guarantees."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bresources", "g l s p m", "", "[limit_name ...]")
    return run_listing(context, table)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
