"""lsacct: show tasks of remote execution from a task log of LSF."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.options import lsf_file
from cli.options.listing import BASE, run_listing
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options.options import Options


def run(context: Context) -> int:
    """Ask and print."""
    return run_listing(context, Table("lsacct", "l", "C S f m u", "[pid ...]"), caller=BASE, change=_with_file)


def _with_file(context: Context, options: Options, words: list[str]) -> None:
    lsf_file.send(context, options, [], lsf_file.ANY)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)
