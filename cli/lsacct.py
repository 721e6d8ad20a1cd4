"""lsacct: show tasks of remote execution from a task log of LSF."""

from __future__ import annotations

from cli.common import lsf_file
from cli.common.context import Context, start
from cli.common.listing import BASE, run_listing
from cli.common.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.options import Options


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("lsacct", "l", "C S f m u", "[pid ...]"), caller=BASE, change=_with_file)


def _with_file(context: Context, options: Options, words: list[str]) -> None:
    lsf_file.send(context, options, [], lsf_file.ANY)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
