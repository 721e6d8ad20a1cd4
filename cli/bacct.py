"""bacct: sum up jobs that have ended."""

from __future__ import annotations

from cli.common.context import Context, start
from cli.common.listing import run_listing
from cli.common.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table(
        "bacct",
        "b d e l w x E UF gpu aff cname hostfile",
        "C D S T f N P q m u J M app sla U G g",
        "[job_ID | job_ID[index_list]] ...",
    )
    return run_listing(context, table)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
