"""bhist: show what became of jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options import lsf_file
from cli.options.listing import run_listing
from cli.options.options import Table


def run(context: Context) -> int:
    """Ask and print."""
    table = Table(
        "bhist",
        "a b d e l p r s t w UF gpu aff hostfile cname",
        "C D S T f n N P q m J Jd u app g G Lp",
        "[job_ID | job_ID[index_list]] ...",
        refused="cname",
    )
    return run_listing(context, table, change=lsf_file.send)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
