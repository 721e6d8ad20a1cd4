"""bjobs: show jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options.listing import run_listing
from cli.options.options import Table

FLAGS = (
    "a A d p p0 p1 p2 p3 pe pei pi r s ss l w W WL WP WF UF X x fwd noheader json hms sum psum aff gpu prio plan"
    " script env hostfile cname aps data bucket"
)
VALUED = "u q m J P N g G app o sla U Lp Jd rsv rusage"


def run(context: Context) -> int:
    """Ask and print."""
    table = Table("bjobs", FLAGS, VALUED, "[job_ID | job_ID[index_list]] ...", refused="cname bucket")
    return run_listing(context, table, form="LSB_BJOBS_FORMAT")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
