"""bhosts: show the hosts of the batch system."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table(
        "bhosts",
        "a w l x X s aff gpu rc rconly noheader json alloc cname e sl",
        "R o",
        "[host_name | host_group] ...",
        refused="rc rconly cname",
    )
    return run_listing(context, table, form="LSB_BHOSTS_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
